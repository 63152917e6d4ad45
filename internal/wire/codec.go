package wire

import (
	"errors"
	"fmt"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Bounds of what is decoded, besides its bytes. Each list's own limit is the server's to enforce, but by then it is a list:
// a few megabytes of the smallest items would be hundreds of megabytes of structs.
const (
	maxFields = 400_000 // of one request with all those within it: twice what 10,000 full rows have
	maxDepth  = 100     // a message in a message …: deeper ones are chains of causes that are cut anyway
)

var (
	errTooMany = fmt.Errorf("more than %d values", maxFields)
	errTooDeep = fmt.Errorf("nested more than %d deep", maxDepth)
)

// Codecs are Connect's own for protobuf and JSON, but look at what a peer sent before they decode it: a message of more
// values than any call may have is an error, whatever it takes to hold it.
func Codecs() []connect.Codec {
	return []connect.Codec{binaryCodec{}, jsonCodec{"json"}, jsonCodec{"json; charset=utf-8"}}
}

var errNoMessage = errors.New("not a protobuf message")

type binaryCodec struct{}

func (binaryCodec) Name() string { return "proto" }

func (c binaryCodec) Marshal(v any) ([]byte, error) { return c.MarshalAppend(nil, v) }

// MarshalAppend is Marshal into a buffer that Connect keeps.
func (binaryCodec) MarshalAppend(to []byte, v any) ([]byte, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, errNoMessage
	}
	return proto.MarshalOptions{}.MarshalAppend(to, m)
}

func (binaryCodec) Unmarshal(b []byte, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return errNoMessage
	}
	left := maxFields
	if err := scanBinary(b, m.ProtoReflect().Descriptor(), &left, maxDepth); err != nil {
		return err
	}
	return proto.Unmarshal(b, m)
}

// scanBinary counts the fields of a message, and of those within it, down from left.
func scanBinary(b []byte, of protoreflect.MessageDescriptor, left *int, depth int) error {
	if depth == 0 {
		return errTooDeep
	}
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		if *left--; *left < 0 {
			return errTooMany
		}
		value := protowire.ConsumeFieldValue(number, kind, b[n:])
		if value < 0 {
			return protowire.ParseError(value)
		}
		if f := of.Fields().ByNumber(number); f != nil && f.Message() != nil && kind == protowire.BytesType {
			inner, _ := protowire.ConsumeBytes(b[n:])
			if err := scanBinary(inner, f.Message(), left, depth-1); err != nil {
				return err
			}
		}
		b = b[n+value:]
	}
	return nil
}

// jsonCodec is JSON as protobuf maps it. Fields that this version does not know are left out.
type jsonCodec struct{ name string }

func (c jsonCodec) Name() string { return c.name }

func (c jsonCodec) Marshal(v any) ([]byte, error) { return c.MarshalAppend(nil, v) }

// MarshalAppend is Marshal into a buffer that Connect keeps.
func (jsonCodec) MarshalAppend(to []byte, v any) ([]byte, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, errNoMessage
	}
	return protojson.MarshalOptions{}.MarshalAppend(to, m)
}

func (jsonCodec) Unmarshal(b []byte, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return errNoMessage
	}
	if len(b) == 0 {
		return errors.New("the body is empty; it must be a JSON object, such as {}")
	}
	if err := scanJSON(b); err != nil {
		return err
	}
	return protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(b, m)
}

// scanJSON counts what begins a value, outside of strings.
func scanJSON(b []byte) error {
	values, depth, quoted := 0, 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted:
			if c == '\\' {
				i++
			}
			quoted = c != '"'
		case c == '"':
			quoted = true
		case c == ',', c == '{', c == '[':
			if values++; values > maxFields {
				return errTooMany
			}
			if c != ',' {
				depth++
			}
			if depth > maxDepth {
				return errTooDeep
			}
		case c == '}', c == ']':
			depth--
		}
	}
	return nil
}
