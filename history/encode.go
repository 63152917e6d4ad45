package history

import (
	"encoding/binary"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/outbox"
)

// How events are kept. An entry of the stream has the first sequence number and the number of its events in
// its ID, one field with the events and a field t with the instant of Redis's clock. The field's name says how
// its value is to be read:
//
//	e  events, one after the other, each a kind, then its fields
//	d  "first count run": the dispatch of consecutive ordinals, two events each
//	x  "run": the cancel of every ordinal that the run's bitmap of the rest names
//
// Numbers are unsigned varints, texts and bytes their length and themselves. A kind keeps its number and its
// fields for ever; a new need is a new kind.
type kind byte

const (
	kindPreamble        kind = 1  // worker, claimed at: of the events that follow in the entry
	kindStarted         kind = 2  // run, rows
	kindScheduled       kind = 3  // ordinal, type, queue, node, key, input
	kindActivityStarted kind = 4  // ordinal, attempt
	kindAttemptFailed   kind = 5  // ordinal, attempt, when the next is due, failure
	kindCompleted       kind = 6  // ordinal, attempt, payload
	kindFailed          kind = 7  // ordinal, attempt, failure
	kindCancelled       kind = 8  // ordinal
	kindCancelRequested kind = 9  // reason
	kindDecided         kind = 10 // status
	kindClosed          kind = 11 // status
)

// Content types that are kept as a number; any other follows number 255 as a text.
var contentTypes = []string{"", umbel.ContentTypeJSON, "text/plain", "application/octet-stream", "application/x-protobuf"}

const otherContentType = 255

func appendText[S string | []byte](b []byte, s S) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

func appendInt(b []byte, n int64) []byte { return binary.AppendUvarint(b, uint64(n)) }

func appendPayload(b []byte, p umbel.Payload) []byte {
	for i, t := range contentTypes {
		if p.ContentType == t {
			return appendText(append(b, byte(i)), p.Data)
		}
	}
	return appendText(appendText(append(b, otherContentType), p.ContentType), p.Data)
}

// Flags of a failure.
const (
	nonRetryable byte = 1 << iota
	hasStack
	hasCause
)

// EncodeFailure encodes f, cut to its limits, as it is kept with rows and events.
func EncodeFailure(f *umbel.Failure) []byte { return appendFailure(nil, f.Clip()) }

func appendFailure(b []byte, f *umbel.Failure) []byte {
	var flags byte
	if f.NonRetryable {
		flags |= nonRetryable
	}
	if f.Stack != "" {
		flags |= hasStack
	}
	if f.Cause != nil {
		flags |= hasCause
	}
	b = append(b, flags)
	b = appendInt(b, int64(f.Attempt))
	b = appendText(appendText(b, f.Type), f.Message)
	if f.Stack != "" {
		b = appendText(b, f.Stack)
	}
	if f.Cause != nil {
		b = appendFailure(b, f.Cause)
	}
	return b
}

// DecodeFailure undoes [EncodeFailure].
func DecodeFailure(s string) (*umbel.Failure, error) {
	d := decoder{rest: s}
	f := d.failure(0)
	if d.err == nil && d.rest != "" {
		d.err = errDamaged
	}
	return f, d.err
}

// encodePreamble says who ran the attempts of the events behind it.
func encodePreamble(worker string, claimedAt time.Time) []byte {
	b := appendText([]byte{byte(kindPreamble)}, worker)
	return appendInt(b, max(claimedAt.UnixMilli(), 0))
}

// encodeEvent appends e. What its type does not use is left out.
func encodeEvent(b []byte, e umbel.Event) ([]byte, error) {
	if e.Ordinal < 0 || e.Attempt < 0 || e.Scheduled < 0 {
		return nil, umbel.Invalid("event", string(e.Type), "has a negative number")
	}
	switch e.Type {
	case umbel.WorkflowStarted:
		return appendInt(appendText(append(b, byte(kindStarted)), string(e.RunID)), e.Scheduled), nil
	case umbel.ActivityScheduled:
		b = appendInt(append(b, byte(kindScheduled)), e.Ordinal)
		b = appendText(appendText(appendText(appendText(b, e.Row.Type), e.TaskQueue), e.Node), e.Key)
		return appendPayload(b, e.Input), nil
	case umbel.ActivityStarted:
		return appendInt(appendInt(append(b, byte(kindActivityStarted)), e.Ordinal), int64(e.Attempt)), nil
	case umbel.ActivityAttemptFailed:
		next := int64(0)
		if !e.NextVisible.IsZero() {
			if next = outbox.CeilMilli(e.NextVisible).UnixMilli(); next < firstInstant {
				return nil, umbel.Invalid("next visible", e.NextVisible.Format(time.RFC3339), "must be after 2001")
			}
		}
		return appendAttemptFailed(b, e, next), nil
	case umbel.ActivityCompleted:
		return appendPayload(appendInt(appendInt(append(b, byte(kindCompleted)), e.Ordinal), int64(e.Attempt)), e.Result), nil
	case umbel.ActivityFailed:
		b = appendInt(appendInt(append(b, byte(kindFailed)), e.Ordinal), int64(e.Attempt))
		return appendFailure(b, failureOf(e).Clip()), nil
	case umbel.ActivityCancelled:
		return appendInt(append(b, byte(kindCancelled)), e.Ordinal), nil
	case umbel.CancelRequested:
		return appendText(append(b, byte(kindCancelRequested)), e.Reason), nil
	case umbel.FanOutDecided:
		return appendText(append(b, byte(kindDecided)), string(e.Status)), nil
	case umbel.WorkflowClosed:
		return appendText(append(b, byte(kindClosed)), string(e.Status)), nil
	}
	return nil, umbel.Invalid("event type", string(e.Type), "is not one that history keeps")
}

// firstInstant tells instants, in ms since 1970, from waits: it is in 2001, and a wait of as many ms takes 31 years.
const firstInstant = 1_000_000_000_000

// appendAttemptFailed appends e, an ActivityAttemptFailed. next is when the next attempt is due: 0 for no word of it,
// below firstInstant a wait from the instant of the entry, else the instant itself.
func appendAttemptFailed(b []byte, e umbel.Event, next int64) []byte {
	b = appendInt(appendInt(append(b, byte(kindAttemptFailed)), e.Ordinal), int64(e.Attempt))
	return appendFailure(appendInt(b, next), failureOf(e).Clip())
}

func failureOf(e umbel.Event) *umbel.Failure {
	if e.Failure == nil {
		return &umbel.Failure{}
	}
	return e.Failure
}

// closing are the two events that close a run.
func closing(s umbel.Status) []byte {
	b := appendText([]byte{byte(kindDecided)}, string(s))
	return appendText(append(b, byte(kindClosed)), string(s))
}
