package wire_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	v1 "github.com/umbelhq/umbel/api/gen/umbel/v1"
	"github.com/umbelhq/umbel/internal/wire"
)

var update = flag.Bool("update", false, "record this version's messages anew")

// transcript is where the messages of v0.1 are recorded, in both encodings. Later versions record theirs beside it, and
// go on reading these.
const transcript = "testdata/v0.1"

// A message that v0.1 sent means what it meant then, and this version still sends the same.
func TestTranscript(t *testing.T) {
	t.Parallel()
	for _, s := range samples() {
		for _, ext := range []string{"json", "proto"} {
			c := codec(t, ext)
			file := filepath.Join(transcript, s.name+"."+map[string]string{"json": "json", "proto": "binpb"}[ext])
			if *update {
				record(t, file, c.Name(), s.message)
			}
			data, err := os.ReadFile(file)
			if err != nil {
				t.Errorf("%v; go test -update writes it", err)
				continue
			}
			m := s.message.ProtoReflect().New().Interface()
			if err := c.Unmarshal(data, m); err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			if d := s.same(t, m); d != "" {
				t.Errorf("%s decodes to something else (-want +got):\n%s", file, d)
			}
			if !proto.Equal(m, s.message) {
				t.Errorf("%s: this version sends something else: %v", file, s.message)
			}
		}
	}
}

func record(t *testing.T, file, name string, m proto.Message) {
	t.Helper()
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if name == "json" {
		var text bytes.Buffer
		if data, err = codec(t, "json").Marshal(m); err == nil {
			err = json.Indent(&text, data, "", "  ")
		}
		data = append(text.Bytes(), '\n')
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// The transcript covers every field of every message.
func TestTranscriptIsWhole(t *testing.T) {
	t.Parallel()
	seen := map[protoreflect.FullName]bool{}
	for _, s := range samples() {
		eachMessage(s.message.ProtoReflect(), func(m protoreflect.Message) {
			seen[m.Descriptor().FullName()] = true
			m.Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
				seen[f.FullName()] = true
				return true
			})
		})
	}
	for _, file := range []protoreflect.FileDescriptor{v1.File_umbel_v1_payload_proto, v1.File_umbel_v1_worker_proto, v1.File_umbel_v1_workflow_proto} {
		for i := range file.Messages().Len() {
			m := file.Messages().Get(i)
			if !seen[m.FullName()] {
				t.Errorf("no sample has a %s", m.FullName())
			}
			for j := range m.Fields().Len() {
				if f := m.Fields().Get(j); !seen[f.FullName()] {
					t.Errorf("no sample sets %s", f.FullName())
				}
			}
		}
	}
}

// eachMessage visits a message and those within it.
func eachMessage(m protoreflect.Message, visit func(protoreflect.Message)) {
	visit(m)
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				eachMessage(v.List().Get(i).Message(), visit)
			}
		default:
			eachMessage(v.Message(), visit)
		}
		return true
	})
}

// What a later version adds to any message, this one reads over, and loses nothing that it knows.
func TestFieldsOfLaterVersions(t *testing.T) {
	t.Parallel()
	for _, s := range samples() {
		m := proto.Clone(s.message)
		eachMessage(m.ProtoReflect(), func(m protoreflect.Message) {
			m.SetUnknown(protoreflect.RawFields("\xc2\x3e\x05later\xc8\x3e\x01")) // fields 1000 and 1001
		})
		binary, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		text, err := codec(t, "json").Marshal(s.message)
		if err != nil {
			t.Fatal(err)
		}
		var object any
		if err := json.Unmarshal(text, &object); err != nil {
			t.Fatal(err)
		}
		add(object)
		if text, err = json.Marshal(object); err != nil {
			t.Fatal(err)
		}
		for name, data := range map[string][]byte{"proto": binary, "json": text} {
			got := s.message.ProtoReflect().New().Interface()
			if err := codec(t, name).Unmarshal(data, got); err != nil {
				t.Errorf("%s as %s: %v", s.name, name, err)
				continue
			}
			if d := s.same(t, got); d != "" {
				t.Errorf("%s as %s lost something (-want +got):\n%s", s.name, name, d)
			}
		}
	}
}

// add puts a field into each object.
func add(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, inner := range v {
			add(inner)
		}
		v["laterField"] = map[string]any{"of": []any{1, "kind"}}
	case []any:
		for _, inner := range v {
			add(inner)
		}
	}
}

// Values of enums and words that only a later version knows pass on as they are, and never as something else.
func TestValuesOfLaterVersions(t *testing.T) {
	t.Parallel()
	renewed, err := wire.ToRenewReply(&v1.RenewResponse{States: []v1.HoldState{99}})
	if err != nil || renewed.States[0] != 99 {
		t.Errorf("%+v, %v", renewed, err)
	}
	reported, err := wire.ToReportReply(&v1.ReportResponse{Verdicts: []*v1.Verdict{{Code: 99, Error: &v1.Error{Code: "later_code"}}}})
	if err != nil || reported.Verdicts[0].Code != 99 || reported.Verdicts[0].Err.Code != "later_code" {
		t.Errorf("%+v, %v", reported, err)
	}
	page, err := wire.ToResultsReply(&v1.ResultsResponse{Results: []*v1.Result{{Ordinal: 3, Status: "continued"}}})
	if err != nil || page.Results[0].Status != "continued" || page.Results[0].Err == nil {
		t.Errorf("a result that this version does not know passes for a success: %+v, %v", page, err)
	}
	events, err := wire.ToHistoryReply(&v1.HistoryResponse{Events: []*v1.Event{{Seq: 1, Type: "Sealed"}}})
	if err != nil || events.Events[0].Type != "Sealed" {
		t.Errorf("%+v, %v", events, err)
	}
	run, err := wire.ToDescribeReply(&v1.DescribeResponse{Run: &v1.RunInfo{Status: "continued"}})
	if err != nil || run.Status != "continued" {
		t.Errorf("%+v, %v", run, err)
	}
}
