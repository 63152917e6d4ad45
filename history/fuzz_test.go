package history

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel"
)

// Whatever stands in Redis: an error or events, no panic, and no more memory than the bytes are worth.
func FuzzDecodeEntry(f *testing.F) {
	for _, g := range goldens() {
		var b []byte
		for _, e := range g.events {
			b, _ = encodeEvent(b, e)
		}
		f.Add("1-1", "e", string(b))
		f.Add("7-3", "e", string(encodePreamble("w", goldenAt))+string(b))
	}
	f.Add("1-4", "d", "0 2 run with a space")
	f.Add("1-99999999999", "d", "0 49999999999 run")
	f.Add("9223372036854775807-9223372036854775807", "e", "\x08\x01")
	f.Add("1-9223372036854775807", "x", "run")
	f.Fuzz(func(t *testing.T, id, kind, value string) {
		e, err := parseEntry(redis.XMessage{ID: id, Values: map[string]any{kind: value, "t": "1796000000123"}})
		if err != nil {
			return
		}
		_ = e.check()
		n := 0
		for ev, err := range e.decode(e.first) {
			if n++; err == nil && ev.Seq < e.first {
				t.Fatalf("event %d of an entry from %d", ev.Seq, e.first)
			}
		}
		if n > len(value)+1 {
			t.Fatalf("%d events in %d bytes", n, len(value))
		}
		if first, count, _, err := e.dispatched(); err == nil && (first < 0 || count < 1 || first+count > 1<<24) {
			t.Fatalf("dispatch of %d from %d", count, first)
		}
	})
}

func FuzzDecodeFailure(f *testing.F) {
	for _, g := range goldens() {
		if fail := g.events[0].Failure; fail != nil {
			f.Add(string(EncodeFailure(fail)))
		}
	}
	f.Add(strings.Repeat("\x04\x00\x00\x00", 1000))
	f.Add("\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\x7f")
	f.Fuzz(func(t *testing.T, s string) {
		fail, err := DecodeFailure(s)
		if err != nil {
			return
		}
		depth := 0
		for c := fail; c != nil; c = c.Cause {
			depth++
		}
		if depth > umbel.MaxErrorCauses+1 {
			t.Fatalf("%d causes", depth)
		}
		again, err := DecodeFailure(string(EncodeFailure(fail)))
		if err != nil || again.Type != fail.Clip().Type {
			t.Fatalf("%+v, %v after another round, want %+v", again, err, fail)
		}
	})
}

func FuzzParseCursor(f *testing.F) {
	f.Add("run.12.0000abcd")
	f.Add("run.o.12")
	f.Add("a.b.o.0")
	f.Add("run.9223372036854775807.ffffffff")
	f.Fuzz(func(t *testing.T, s string) {
		c, err := parseCursor(umbel.Cursor(s))
		if err != nil {
			return
		}
		again, err := parseCursor(c.String())
		if err != nil || again != c {
			t.Fatalf("%q is %+v, then %+v, %v", s, c, again, err)
		}
	})
}
