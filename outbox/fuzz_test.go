package outbox

import (
	"strings"
	"testing"

	"github.com/umbelhq/umbel"
)

// Whatever stands in Redis: an error or a value, no panic, and no more memory than the bytes are worth.
func FuzzChunk(f *testing.F) {
	var b []byte
	for _, in := range []input{
		{payload: umbel.Payload{ContentType: "text/plain", Data: []byte("a")}},
		{route: 63, key: "label", payload: umbel.Payload{ContentType: "x", Data: []byte("\x00\xff")}},
		{large: true, payload: umbel.Payload{ContentType: "text/plain"}},
	} {
		b = in.append(b, "text/plain")
		f.Add(string(b), int64(0))
	}
	f.Add(string(b), int64(2))
	f.Add("\x04\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", int64(0))
	f.Add("\x00\xff\xff\xff\xff\xff\xff\xff\xff\x7f", int64(1))
	f.Fuzz(func(t *testing.T, chunk string, ordinal int64) {
		if ordinal < 0 || ordinal > umbel.MaxOrdinal {
			return
		}
		rd := chunkReader{rows: 100, shared: "text/plain", chunks: map[int64]string{ordinal / 100: chunk}, at: -1}
		in, err := rd.input(ordinal)
		if err != nil {
			return
		}
		if in.route < 0 || len(in.payload.Data)+len(in.key) > len(chunk) {
			t.Fatalf("route %d, %d bytes of %d", in.route, len(in.payload.Data)+len(in.key), len(chunk))
		}
		again, rest, err := next(string(in.append(nil, "text/plain")), "text/plain")
		if err != nil || rest != "" || again.key != in.key || string(again.payload.Data) != string(in.payload.Data) {
			t.Fatalf("%+v, %v after another round, want %+v", again, err, in)
		}
	})
}

func FuzzParseRecord(f *testing.F) {
	f.Add("C0102" + strings.Repeat("n", 26) + "error")
	f.Add("P6463" + strings.Repeat("-", 26))
	f.Add("C-1-1" + strings.Repeat("n", 26))
	f.Fuzz(func(t *testing.T, s string) {
		if r, err := parseRecord(s); err == nil && (r.tries < 0 || r.route < 0) {
			t.Fatalf("%+v of %q", r, s)
		}
	})
}

func FuzzParseLease(f *testing.F) {
	head := "1000030000179600000012300"
	f.Add(head + "worker\nrun\n0-4,9-9")
	f.Add(head + "\n\n0-16777215")
	f.Add(head + "w\nr\n0-16777215,0-16777215,0-16777215,0-16777215")
	f.Add(head + "w\nr\n-5-3")
	f.Fuzz(func(t *testing.T, s string) {
		l, err := parseLease("nonce", s)
		if err != nil {
			return
		}
		if len(l.Ordinals) > maxLeaseRows || l.Lease < 0 || l.Route < 0 {
			t.Fatalf("%d ordinals, lease %v, route %d of %q", len(l.Ordinals), l.Lease, l.Route, s)
		}
		for i, o := range l.Ordinals {
			if o < 0 || o > umbel.MaxOrdinal {
				t.Fatalf("ordinal %d is %d", i, o)
			}
		}
	})
}

func FuzzParseMember(f *testing.F) {
	f.Add("00000000f00000009", 1.5)
	f.Add("00000007r", 0.0)
	f.Add("-0000007r", 0.0)
	f.Add("00000009f00000000", 0.0)
	f.Add("00000000f99999999", 0.0)
	f.Fuzz(func(t *testing.T, s string, score float64) {
		m, err := parseMember(s, score)
		if err != nil {
			return
		}
		if m.first < 0 || m.last < m.first || m.last > umbel.MaxOrdinal || m.fresh == (s[8] == 'r') {
			t.Fatalf("%+v of %q", m, s)
		}
		_ = m.visible()
	})
}
