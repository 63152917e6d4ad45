package protocol

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/umbelhq/umbel"
	v1 "github.com/umbelhq/umbel/api/gen/umbel/v1"
	"github.com/umbelhq/umbel/server"
)

// Whatever the protocol has is in the document: calls, fields of messages, values of enumerations.
func TestDocumentNamesAll(t *testing.T) {
	t.Parallel()
	text := read(t)
	seen := 0
	named := func(what, name string) {
		seen++
		if !strings.Contains(text, name) {
			t.Errorf("docs/protocol.md does not name the %s %s", what, name)
		}
	}
	for _, file := range []protoreflect.FileDescriptor{v1.File_umbel_v1_payload_proto, v1.File_umbel_v1_workflow_proto, v1.File_umbel_v1_worker_proto} {
		for i := range file.Services().Len() {
			s := file.Services().Get(i)
			named("service", string(s.FullName()))
			for j := range s.Methods().Len() {
				named("call", string(s.Methods().Get(j).Name()))
			}
		}
		for i := range file.Messages().Len() {
			m := file.Messages().Get(i)
			if m.Name() == "Event" { // it refers to workflow.proto
				continue
			}
			for j := range m.Fields().Len() {
				if f := m.Fields().Get(j); !strings.Contains(text, `"`+f.JSONName()+`"`) {
					named("field of "+string(m.Name()), "`"+f.JSONName()+"`")
				}
			}
		}
		for i := range file.Enums().Len() {
			values := file.Enums().Get(i).Values()
			for j := 1; j < values.Len(); j++ { // 0 is none
				named("value", string(values.Get(j).Name()))
			}
		}
	}
	if seen < 40 {
		t.Errorf("saw %d names only", seen)
	}
}

// broken is an engine that has one answer.
type broken struct {
	umbel.Engine

	err error
}

func (b broken) Describe(context.Context, umbel.DescribeRequest) (umbel.DescribeReply, error) {
	return umbel.DescribeReply{}, b.err
}

// Each error travels as the document's table says.
func TestDocumentListsErrors(t *testing.T) {
	t.Parallel()
	text := read(t)
	for _, code := range []umbel.Code{
		umbel.CodeInvalid, umbel.CodeNotFound, umbel.CodeAlreadyExists, umbel.CodeLimit, umbel.CodeConflict, umbel.CodeFenced,
		umbel.CodeGap, umbel.CodeStagingLost, umbel.CodeCursorLost, umbel.CodeOverloaded, umbel.CodeUnavailable,
		umbel.CodeUnsupported, umbel.CodeInternal,
	} {
		w := post(t, server.NewHandler(broken{err: &umbel.Error{Code: code}}), "WorkflowService/Describe", `{}`)
		var body struct {
			Code    string
			Details []struct{ Debug struct{ Code string } }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || len(body.Details) != 1 || body.Details[0].Debug.Code != string(code) {
			t.Errorf("%s: %v, %s", code, err, w.Body)
		}
		found := false
		for line := range strings.Lines(text) {
			first, rest, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
			found = found || strings.Contains(first, "`"+string(code)+"`") && strings.HasPrefix(rest, fmt.Sprintf("`%s` | %d |", body.Code, w.Code))
		}
		if !found {
			t.Errorf("docs/protocol.md does not say that %s travels as %s, %d", code, body.Code, w.Code)
		}
	}
}

// What never becomes a call is answered as the document says.
func TestDocumentListsRefusals(t *testing.T) {
	t.Parallel()
	handler := server.NewHandler(broken{})
	for _, tc := range []struct {
		call, body string
		status     int
	}{
		{"WorkflowService/Describe", `{"workflowId"`, http.StatusBadRequest},
		{"WorkflowService/Describe", `{"wait": 5}`, http.StatusBadRequest},
		{"WorkflowService/Describe", strings.Repeat(" ", 2<<20) + `{}`, http.StatusTooManyRequests},
		{"WorkflowService/Nothing", `{}`, http.StatusNotFound},
		{"", `{}`, http.StatusNotFound},
	} {
		if w := post(t, handler, tc.call, tc.body); w.Code != tc.status || strings.Contains(w.Body.String(), "details") || !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s %.20s: %d %s, want %d, as JSON without details", tc.call, tc.body, w.Code, w.Body, tc.status)
		}
	}
}

// keeper is an engine that keeps what it is asked.
type keeper struct {
	umbel.Engine

	asked umbel.CommitRequest
}

func (k *keeper) Commit(_ context.Context, r umbel.CommitRequest) (umbel.CommitReply, error) {
	k.asked = r
	return umbel.CommitReply{}, nil
}

// A server takes what the document says that it takes: names of both kinds, numbers as texts, null; and leaves what it
// does not know.
func TestRequestsAreReadKindly(t *testing.T) {
	t.Parallel()
	want := umbel.CommitRequest{
		Namespace: umbel.DefaultNamespace, WorkflowID: "w", Scheduled: 7, OnExisting: umbel.Existing,
		Rows: []umbel.StagedRow{}, Types: []umbel.TypePolicy{},
	}
	for body, existing := range map[string]umbel.OnExisting{
		`{"workflowId": "w", "scheduled": "7", "onExisting": "ON_EXISTING_EXISTING"}`:                            umbel.Existing,
		`{"workflow_id": "w", "scheduled": 7, "on_existing": 2, "namespace": null}`:                              umbel.Existing,
		`{"workflowId": "w", "scheduled": 7, "onExisting": "ON_EXISTING_NEW", "new": {"a": [1, null]}, "x": ""}`: umbel.SameInputs,
	} {
		k := &keeper{}
		w := post(t, server.NewHandler(k), "WorkflowService/Commit", body)
		want.OnExisting = existing
		if w.Code != http.StatusOK || !reflect.DeepEqual(k.asked, want) {
			t.Errorf("%s: %d %s\nread as %+v\nwant    %+v", body, w.Code, w.Body, k.asked, want)
		}
	}
}

// post makes a call of a handler.
func post(t *testing.T, h http.Handler, call, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/umbel.v1."+call, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func read(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
