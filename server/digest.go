package server

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"

	"github.com/umbelhq/umbel"
)

// digestOf is the digest of a start whose client sent none: over what was received, in an encoding of its own, so
// that it never equals one that a client made. Rows that were staged before the commit are not at hand: such a
// start equals no other.
func digestOf(r umbel.CommitRequest) umbel.Digest {
	if r.Digest != (umbel.Digest{}) || int64(len(r.Rows)) != r.Scheduled {
		return r.Digest
	}
	d := digester{sha256.New()}
	d.text("umbel server digest 1")
	d.number(r.Scheduled)
	for _, row := range r.Rows {
		for _, s := range []string{row.Type, cmp.Or(row.TaskQueue, umbel.DefaultTaskQueue), row.Node, row.Key, row.Input.ContentType} {
			d.text(s)
		}
		d.number(int64(row.Delay))
		d.number(row.NotBefore.UnixNano())
		d.text(string(row.Input.Data))
	}
	for _, t := range r.Types {
		d.text(t.Type)
		d.number(int64(t.StartToClose))
		d.text(fmt.Sprint(t.Retry.WithDefaults()))
	}
	var sum umbel.Digest
	d.Sum(sum[:0])
	return sum
}

// digester writes fields so that no two sequences of them look alike.
type digester struct{ hash.Hash }

func (d digester) text(s string) {
	d.number(int64(len(s)))
	_, _ = d.Write([]byte(s)) // a hash takes everything
}

func (d digester) number(n int64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	_, _ = d.Write(b[:]) // a hash takes everything
}
