package umbel

import (
	"encoding/json"
	"fmt"
)

// Payload is an input or a result: a content type and bytes. Nothing between the two SDKs parses it; the
// bytes come back as they went in. The zero Payload is the empty one, which [None] travels as.
type Payload struct {
	ContentType string
	Data        []byte
}

// None is the Out of an activity with nothing to return. It travels as an empty payload, not as {}.
type None struct{}

// ContentTypeJSON is the content type that [JSON] writes.
const ContentTypeJSON = "application/json"

// Codec turns values into payloads and back. A codec must be safe for concurrent use.
type Codec interface {
	// Encode returns v as a payload.
	Encode(v any) (Payload, error)
	// Decode stores the value that p holds in what v points to.
	Decode(p Payload, v any) error
}

// JSON is the default codec: encoding/json, but a [Payload] passes as it is and [None] is the empty payload.
// A result that is nil, "", null, [], {} or 0 in its bytes stays apart from the others. An integer of any
// size keeps its digits when the type that receives it can hold them.
var JSON Codec = jsonCodec{}

type jsonCodec struct{}

func (jsonCodec) Encode(v any) (Payload, error) {
	switch v := v.(type) {
	case Payload:
		return v, nil
	case None:
		return Payload{}, nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return Payload{}, fmt.Errorf("encode %T as JSON: %w", v, err)
	}
	return Payload{ContentType: ContentTypeJSON, Data: b}, nil
}

func (jsonCodec) Decode(p Payload, v any) error {
	switch v := v.(type) {
	case *Payload:
		*v = p
		return nil
	case *None:
		return nil
	}
	if err := json.Unmarshal(p.Data, v); err != nil {
		return fmt.Errorf("decode %d bytes of %q as JSON into %T: %w", len(p.Data), p.ContentType, v, err)
	}
	return nil
}

// Validate reports why p cannot travel: more than [MaxPayloadBytes], or a content type that is no name.
func (p Payload) Validate(field string) error {
	if len(p.Data) > MaxPayloadBytes {
		return Limit(field, int64(len(p.Data)), "payload bytes", MaxPayloadBytes)
	}
	return ValidateLabel(field+" content type", p.ContentType)
}
