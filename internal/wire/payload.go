package wire

import (
	"github.com/umbelhq/umbel"
	v1 "github.com/umbelhq/umbel/api/gen/umbel/v1"
)

// payload leaves out an empty payload: that is what one which is absent means.
func payload(p umbel.Payload) *v1.Payload {
	if p.ContentType == "" && len(p.Data) == 0 {
		return nil
	}
	return &v1.Payload{ContentType: p.ContentType, Data: p.Data}
}

func toPayload(p *v1.Payload) umbel.Payload {
	if p == nil {
		return umbel.Payload{}
	}
	return umbel.Payload{ContentType: p.ContentType, Data: p.Data}
}

// maxCauses ends the conversion of chains that no version writes: deep ones would be a stack overflow.
const maxCauses = 4 * umbel.MaxErrorCauses

func failure(f *umbel.Failure) *v1.Failure {
	var first *v1.Failure
	at := &first
	for range maxCauses {
		if f == nil {
			break
		}
		*at = &v1.Failure{
			Type: valid(f.Type), Message: valid(f.Message), Stack: valid(f.Stack),
			Attempt: count(f.Attempt), NonRetryable: f.NonRetryable,
		}
		at, f = &(*at).Cause, f.Cause
	}
	return first
}

func toFailure(m *v1.Failure) *umbel.Failure {
	var first *umbel.Failure
	at := &first
	for range maxCauses {
		if m == nil {
			break
		}
		*at = &umbel.Failure{
			Type: m.Type, Message: m.Message, Stack: m.Stack, Attempt: int(m.Attempt), NonRetryable: m.NonRetryable,
		}
		at, m = &(*at).Cause, m.Cause
	}
	return first
}
