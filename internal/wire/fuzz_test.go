package wire_test

import (
	"testing"

	"google.golang.org/protobuf/proto"
)

// FuzzMessage: whatever bytes come in either encoding, decoding them is an error or a value that stays as it is when it
// travels again.
func FuzzMessage(f *testing.F) {
	all := samples()
	for i, s := range all {
		binary, err := proto.Marshal(s.message)
		if err != nil {
			f.Fatal(err)
		}
		text, err := codec(f, "json").Marshal(s.message)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), false, binary)
		f.Add(uint8(i), true, text)
		f.Add(uint8(i), true, []byte("{}"))
	}
	f.Fuzz(func(t *testing.T, which uint8, asText bool, data []byte) {
		s := all[int(which)%len(all)]
		c := codec(t, map[bool]string{false: "proto", true: "json"}[asText])
		m := s.message.ProtoReflect().New().Interface()
		if c.Unmarshal(data, m) != nil {
			return
		}
		if d, err := s.stable(m); err == nil && d != "" {
			t.Errorf("%s is not stable (-once +twice):\n%s", s.name, d)
		}
	})
}
