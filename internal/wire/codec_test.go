package wire_test

import (
	"bytes"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	v1 "github.com/umbelhq/umbel/api/gen/umbel/v1"
	"github.com/umbelhq/umbel/internal/wire"
)

func codec(t testing.TB, name string) connect.Codec {
	t.Helper()
	for _, c := range wire.Codecs() {
		if c.Name() == name {
			return c
		}
	}
	t.Fatalf("no codec %q", name)
	return nil
}

// nest wraps an empty failure in as many others.
func nest(n int) *v1.Failure {
	f := &v1.Failure{}
	for range n {
		f = &v1.Failure{Cause: f}
	}
	return f
}

// A request of more values than any may have is refused before it is decoded; the largest that may be is not.
func TestCodecsCountBeforeTheyDecode(t *testing.T) {
	t.Parallel()
	full := &v1.StageRequest{Rows: make([]*v1.StagedRow, 10_000)}
	for i := range full.Rows {
		full.Rows[i] = &v1.StagedRow{
			Type: "t", TaskQueue: "q", Node: "n", Key: `k"\,{[`, Input: &v1.Payload{ContentType: "c", Data: []byte("{,")},
		}
	}
	deep, err := proto.Marshal(&v1.ReportRequest{Items: []*v1.ReportItem{{Failure: nest(200)}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, codec string
		to          proto.Message
		data        []byte
		bad         string
	}{
		{"items", "proto", &v1.ReportRequest{}, bytes.Repeat([]byte("\x1a\x00"), 4<<20), "more than"},
		{"rows", "proto", &v1.StageRequest{}, bytes.Repeat([]byte("\x2a\x00"), 8<<20), "more than"},
		{"unknown fields", "proto", &v1.ListRequest{}, bytes.Repeat([]byte("\x7a\x00"), 1<<20), "more than"},
		{"causes", "proto", &v1.ReportRequest{}, deep, "nested"},
		{"items", "json", &v1.ReportRequest{}, []byte(`{"items":[{}` + strings.Repeat(",{}", 2<<20) + `]}`), "more than"},
		{"causes", "json", &v1.ReportRequest{}, []byte(`{"items":[{"failure":` + strings.Repeat(`{"cause":`, 1000) + strings.Repeat("}", 1001) + `]}`), "nested"},
		{"lists", "json", &v1.ReportRequest{}, bytes.Repeat([]byte("["), 1<<20), "nested"},
		{"empty", "json", &v1.ReportRequest{}, nil, "empty"},
		{"half a string", "json", &v1.ReportRequest{}, []byte(`{"worker":"a\`), "EOF"},
		{"half a message", "proto", &v1.ReportRequest{}, []byte("\x0a\x05a"), "unexpected EOF"},
		{"a wrong type", "proto", &v1.ReportRequest{}, []byte("\x0b"), "unexpected EOF"},
	} {
		err := codec(t, c.codec).Unmarshal(c.data, c.to)
		if err == nil || !strings.Contains(err.Error(), c.bad) {
			t.Errorf("%s in %s: %v, want an error that says %q", c.name, c.codec, err, c.bad)
		}
	}
	for _, c := range wire.Codecs() {
		data, err := c.Marshal(full)
		if err != nil {
			t.Fatal(err)
		}
		got := &v1.StageRequest{}
		if err := c.Unmarshal(data, got); err != nil || !proto.Equal(got, full) {
			t.Errorf("%s: 10,000 full rows: %v", c.Name(), err)
		}
		if c.Unmarshal(data, "no message") == nil {
			t.Errorf("%s decodes into what is no message", c.Name())
		}
		if _, err := c.Marshal("no message"); err == nil {
			t.Errorf("%s encodes what is no message", c.Name())
		}
	}
}
