package outbox

import (
	"encoding/binary"
	"errors"

	"github.com/umbelhq/umbel"
)

// Inputs are packed in chunks of consecutive ordinals, a hash field each, so that any row's input is found in
// constant time and a thousand small ones cost little more than their bytes.
const (
	// chunkBytes is what a chunk should hold: enough that its field's overhead is small beside it, little
	// enough that a claim of ten rows does not read much more than it needs.
	chunkBytes = 8 << 10
	// maxChunkBytes bounds a chunk; an input that would take its chunk above that has a field of its own.
	maxChunkBytes = 16 << 10
	// maxChunkRows bounds the rows of a chunk.
	maxChunkRows = 100
)

// input is what a chunk keeps of a row.
type input struct {
	route   int
	key     string
	payload umbel.Payload
	large   bool // the bytes are in a field of their own
}

// Flags of an input, a byte in front of it.
const (
	hasKey byte = 1 << iota
	hasContentType
	hasRoute
	isLarge
)

// append encodes in at the end of b. shared is the content type that need not be repeated.
func (in input) append(b []byte, shared string) []byte {
	var flags byte
	if in.key != "" {
		flags |= hasKey
	}
	if in.payload.ContentType != shared {
		flags |= hasContentType
	}
	if in.route != 0 {
		flags |= hasRoute
	}
	if in.large {
		flags |= isLarge
	}
	b = append(b, flags)
	if in.route != 0 {
		b = binary.AppendUvarint(b, uint64(in.route))
	}
	if in.key != "" {
		b = appendString(b, in.key)
	}
	if flags&hasContentType != 0 {
		b = appendString(b, in.payload.ContentType)
	}
	if !in.large {
		b = appendString(b, in.payload.Data)
	}
	return b
}

func appendString[S string | []byte](b []byte, s S) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

var errChunk = errors.New("chunk of inputs is cut off or damaged")

// next decodes the input at the front of a chunk and returns the rest.
func next(chunk, shared string) (in input, rest string, err error) {
	if chunk == "" {
		return in, "", errChunk
	}
	flags := chunk[0]
	rest = chunk[1:]
	if flags&hasRoute != 0 {
		var r uint64
		if r, rest, err = uvarint(rest); err != nil {
			return in, "", err
		}
		if r >= umbel.MaxRoutes {
			return in, "", errChunk
		}
		in.route = int(r)
	}
	if flags&hasKey != 0 {
		if in.key, rest, err = str(rest); err != nil {
			return in, "", err
		}
	}
	in.payload.ContentType = shared
	if flags&hasContentType != 0 {
		if in.payload.ContentType, rest, err = str(rest); err != nil {
			return in, "", err
		}
	}
	if in.large = flags&isLarge != 0; in.large {
		return in, rest, nil
	}
	var data string
	if data, rest, err = str(rest); err != nil {
		return in, "", err
	}
	if data != "" {
		in.payload.Data = []byte(data)
	}
	return in, rest, nil
}

func uvarint(s string) (uint64, string, error) {
	var v uint64
	for i := 0; i < len(s) && i < binary.MaxVarintLen64; i++ {
		b := s[i]
		v |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			return v, s[i+1:], nil
		}
	}
	return 0, "", errChunk
}

func str(s string) (string, string, error) {
	n, rest, err := uvarint(s)
	if err != nil || n > uint64(len(rest)) {
		return "", "", errChunk
	}
	return rest[:n], rest[n:], nil
}

// chunkReader finds inputs in the chunks that a reply holds. It reads a chunk once as long as the ordinals
// that it is asked for ascend.
type chunkReader struct {
	rows   int64 // of a chunk
	shared string
	chunks map[int64]string

	at   int64 // the ordinal that rest begins with
	rest string
}

// input returns the input of an ordinal, without the bytes of a large one.
func (c *chunkReader) input(ordinal int64) (input, error) {
	first := ordinal - ordinal%c.rows
	if c.at <= first || c.at > ordinal || c.rest == "" {
		c.at, c.rest = first, c.chunks[first/c.rows]
	}
	for {
		in, rest, err := next(c.rest, c.shared)
		if err != nil {
			return in, err
		}
		c.rest = rest
		c.at++
		if c.at > ordinal {
			return in, nil
		}
	}
}
