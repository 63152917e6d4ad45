package client

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"math"
	"time"

	"github.com/umbelhq/umbel"
)

// digestVersion starts every chain. Another encoding gets another version: a run keeps its digest for as long
// as it lives, and a start by a newer client must not meet an older run by chance.
const digestVersion = "umbel start digest v1"

// digest chains SHA-256 over a start, in an encoding that no two different starts share:
//
//	d₀   = SHA-256(version)
//	dᵢ   = SHA-256('r' dᵢ₋₁ type queue node key delay not-before content-type data)  for each row in order
//	last = SHA-256('e' d_N N start-after count {type start-to-close initial cap factor jitter attempts
//	       count {non-retryable}}…)                                                   types in order
//
// A text or bytes is its length and itself; numbers are unsigned varints, durations and lengths of time in
// milliseconds, floats their IEEE bits, big-endian; not-before is 0 for none, else its Unix milliseconds + 1.
// Names and policies are those after defaults. 32 bytes are all that must be kept between two rows.
type digest struct {
	sum umbel.Digest
	h   hash.Hash
	buf []byte
}

func newDigest() *digest {
	return &digest{sum: sha256.Sum256([]byte(digestVersion)), h: sha256.New()}
}

func (d *digest) addRow(r *umbel.StagedRow) {
	b := append(append(d.buf[:0], 'r'), d.sum[:]...)
	b = appendText(b, r.Type)
	b = appendText(b, r.TaskQueue)
	b = appendText(b, r.Node)
	b = appendText(b, r.Key)
	b = appendDuration(b, r.Delay)
	if r.NotBefore.IsZero() {
		b = binary.AppendUvarint(b, 0)
	} else {
		b = binary.AppendUvarint(b, uint64(r.NotBefore.UnixMilli())+1)
	}
	b = appendText(b, r.Input.ContentType)
	b = binary.AppendUvarint(b, uint64(len(r.Input.Data)))
	d.buf = b

	d.h.Reset()
	d.h.Write(b)
	d.h.Write(r.Input.Data)
	d.h.Sum(d.sum[:0])
}

// finish ends the chain. types are sorted and have their defaults.
func (d *digest) finish(n int64, startAfter time.Duration, types []umbel.TypePolicy) umbel.Digest {
	b := append(append(d.buf[:0], 'e'), d.sum[:]...)
	b = binary.AppendUvarint(b, uint64(n))
	b = appendDuration(b, startAfter)
	b = binary.AppendUvarint(b, uint64(len(types)))
	for _, t := range types {
		b = appendPolicy(b, t)
	}
	return sha256.Sum256(b)
}

// appendPolicy appends a policy that has its defaults. Two policies are the same if their encodings are.
func appendPolicy(b []byte, p umbel.TypePolicy) []byte {
	b = appendText(b, p.Type)
	b = appendDuration(b, p.StartToClose)
	b = appendDuration(b, p.Retry.Initial)
	b = appendDuration(b, p.Retry.Cap)
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(p.Retry.Factor))
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(p.Retry.Jitter))
	b = binary.AppendUvarint(b, uint64(p.Retry.MaxAttempts))
	b = binary.AppendUvarint(b, uint64(len(p.Retry.NonRetryable)))
	for _, t := range p.Retry.NonRetryable {
		b = appendText(b, t)
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendDuration(b []byte, d time.Duration) []byte {
	return binary.AppendUvarint(b, uint64(d.Milliseconds()))
}
