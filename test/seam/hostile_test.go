package seam

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/api/gen/umbel/v1/umbelv1connect"
	"github.com/umbelhq/umbel/internal/testredis"
	"github.com/umbelhq/umbel/outbox/outboxtest"
)

// calls are the paths of all calls.
var calls = []string{
	umbelv1connect.WorkflowServiceBeginProcedure, umbelv1connect.WorkflowServiceStageProcedure,
	umbelv1connect.WorkflowServiceCommitProcedure, umbelv1connect.WorkflowServiceDiscardProcedure,
	umbelv1connect.WorkflowServiceDescribeProcedure, umbelv1connect.WorkflowServiceResultsProcedure,
	umbelv1connect.WorkflowServiceCancelProcedure, umbelv1connect.WorkflowServiceHistoryProcedure,
	umbelv1connect.WorkflowServiceListProcedure, umbelv1connect.WorkerServicePollProcedure,
	umbelv1connect.WorkerServiceRenewProcedure, umbelv1connect.WorkerServiceReportProcedure,
	umbelv1connect.WorkerServiceLeaveProcedure,
}

// sized are those that stand for the three limits in bytes.
var sized = []string{
	umbelv1connect.WorkflowServiceBeginProcedure, umbelv1connect.WorkflowServiceStageProcedure, umbelv1connect.WorkerServiceReportProcedure,
}

// body is what a hostile peer sends as a request.
type body struct {
	name, contentType, encoding string
	data                        []byte
	fine                        bool // some call may take it, for it says nothing
	large                       bool // tried with a call of each limit in bytes only
}

func zip(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(data)
	_ = w.Close()
	return b.Bytes()
}

func bodies() []body {
	const pb, js = "application/proto", "application/json"
	bomb := zip(make([]byte, 32<<20))
	return []body{
		{"nothing", pb, "", nil, true, false},
		{"no JSON", js, "", nil, false, false},
		{"half a field", pb, "", []byte("\x0a\x10abc"), false, false},
		{"an endless number", pb, "", bytes.Repeat([]byte{0xff}, 100), false, false},
		{"a wrong wire type", pb, "", []byte("\x08\x01\x10\x01\x18\x01\x20\x01\x2d\x01\x00\x00\x00"), true, false},
		{"a group without an end", pb, "", bytes.Repeat([]byte{0x0b}, 1000), false, false},
		{"unknown fields", pb, "", bytes.Repeat([]byte("\xfa\x7f\x01x"), 1000), true, false},
		{"no UTF-8", pb, "", []byte("\x0a\x01\xff"), false, false},
		{"JSON as protobuf", pb, "", []byte(`{"workflowId":"w"}`), false, false},
		{"half an object", js, "", []byte(`{"workflowId":`), false, false},
		{"a list", js, "", []byte(`[]`), false, false},
		{"null", js, "", []byte(`null`), false, false},
		{"a text", js, "", []byte(`"w"`), false, false},
		{"wrong types", js, "", []byte(`{"namespace":{"a":1},"workflowId":[],"wait":7,"rows":"x"}`), false, false},
		{"two objects", js, "", []byte(`{}{}`), false, false},
		{"unknown names", js, "", []byte(`{"nobody":{"knows":[1,2,3]}}`), true, false},
		{"a NUL", js, "", []byte("{\x00}"), false, false},
		{"protobuf as JSON", js, "", []byte("\x0a\x01w"), false, false},
		{"deep JSON", js, "", []byte(strings.Repeat(`{"a":`, 100_000)), false, true},
		{"many JSON values", js, "", []byte(`{"a":[0` + strings.Repeat(",0", 500_000) + "]}"), false, true},
		{"many fields", pb, "", bytes.Repeat([]byte("\x1a\x00"), 700_000), false, true},
		{"17 MiB", pb, "", make([]byte, 17<<20), false, true},
		{"a bomb", pb, "gzip", bomb, false, true},
		{"no gzip", pb, "gzip", []byte("plain"), false, false},
		{"an unknown encoding", pb, "br", []byte("plain"), false, false},
		{"plain text", "text/plain", "", []byte("{}"), false, false},
		{"a form", "application/x-www-form-urlencoded", "", []byte("workflowId=w"), false, false},
		{"no content type", "", "", []byte("{}"), false, false},
		{"another charset", "application/json; charset=latin1", "", []byte("{}"), false, false},
		{"a gRPC frame that is too long", "application/grpc", "", []byte("\x00\xff\xff\xff\xff"), false, false},
		{"a stream", "application/connect+json", "", []byte("\x00\x00\x00\x00\x02{}"), false, false},
	}
}

// dump is all that is kept, but for when shards were swept.
func (w *world) dump() string {
	var kept []string
	for line := range strings.Lines(outboxtest.Keyspace{Redis: w.redis.Client, Prefix: w.redis.Prefix}.Dump(w.T)) {
		if !strings.Contains(line, ":sweep: ") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

// refusal reads an answer: its status, and the code that its body says.
func refusal(t *testing.T, r *http.Response) (status int, code string) {
	t.Helper()
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Errorf("the answer: %v", err)
	}
	if s := r.Header.Get("Grpc-Status"); s != "" {
		return r.StatusCode, "grpc " + s
	}
	if s := r.Trailer.Get("Grpc-Status"); s != "" {
		return r.StatusCode, "grpc " + s
	}
	var said struct{ Code, Message string }
	if err := json.Unmarshal(text, &said); err != nil && r.StatusCode != http.StatusOK {
		t.Errorf("the body %.80q is no JSON: %v", text, err)
	}
	return r.StatusCode, said.Code
}

// Must show 7, case 56: each call × each hostile body, with a length and in chunks: a typed error, equal keys in Redis,
// and the server lives on.
func TestCase56HostileBodies(t *testing.T) {
	inWorld(t, func(w *world, h2 bool) {
		good := dial(w.T, transport(&w.net, h2), address)
		w.start(good, "w", 1)
		tr := transport(&w.net, h2)
		defer tr.CloseIdleConnections()
		c := &http.Client{Transport: tr}
		time.Sleep(time.Second)
		synctest.Wait()
		before := w.dump()
		all := bodies()
		for _, path := range calls {
			for _, b := range all {
				if b.large && !slices.Contains(sized, path) {
					continue
				}
				for _, chunked := range []bool{false, true}[:map[bool]int{false: 2, true: 1}[h2]] { // HTTP/2 knows no chunks
					what := path + ", " + b.name
					var from io.Reader = bytes.NewReader(b.data)
					if chunked {
						from = io.MultiReader(from) // whose length is not known
					}
					r, err := http.NewRequestWithContext(w.Context(), http.MethodPost, "http://"+address+path, from)
					w.ok(err)
					if b.contentType != "" {
						r.Header.Set("Content-Type", b.contentType)
					}
					if b.encoding != "" {
						r.Header.Set("Content-Encoding", b.encoding)
					}
					got, err := c.Do(r)
					if err != nil {
						if len(b.data) > 1<<20 {
							continue // refused before it was all sent
						}
						w.Errorf("%s: %v", what, err)
						continue
					}
					status, code := refusal(w.T, got)
					switch {
					case status == http.StatusOK && (b.fine || strings.HasPrefix(code, "grpc ") && code != "grpc 0"):
					case status == http.StatusNotImplemented && b.encoding != "":
					case status < 400 || status >= 500 || code == "":
						w.Errorf("%s: status %d, code %q", what, status, code)
					}
				}
			}
		}
		synctest.Wait()
		if after := w.dump(); after != before {
			w.Errorf("something was written:\n%s\n---\n%s", before, after)
		}
		w.finish(good)
	})
}

// What takes the most memory of all that fits the limits in bytes takes little more than its bytes.
func TestTinyItemsTakeNoMemory(t *testing.T) {
	inWorld(t, func(w *world, h2 bool) {
		tr := transport(&w.net, h2)
		defer tr.CloseIdleConnections()
		c := &http.Client{Transport: tr}
		for path, data := range map[string][]byte{
			umbelv1connect.WorkerServiceReportProcedure:  bytes.Repeat([]byte("\x1a\x00"), 4<<20-10),
			umbelv1connect.WorkflowServiceStageProcedure: bytes.Repeat([]byte("\x2a\x00"), 8<<20-10),
		} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r, err := c.Post("http://"+address+path, "application/proto", bytes.NewReader(data))
			w.ok(err)
			if status, code := refusal(w.T, r); status != http.StatusBadRequest || code != "invalid_argument" {
				w.Errorf("%s: status %d, code %q", path, status, code)
			}
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; took > 10*uint64(len(data)) {
				w.Errorf("%s: a body of %d bytes took %d", path, len(data), took)
			}
		}
	})
}

// What is no call is refused in the form of an error of a call.
func TestOtherMethodsAndPaths(t *testing.T) {
	inWorld(t, func(w *world, h2 bool) {
		tr := transport(&w.net, h2)
		defer tr.CloseIdleConnections()
		c := &http.Client{Transport: tr}
		do := func(method, path string) (int, string) {
			r, err := http.NewRequestWithContext(w.Context(), method, "http://"+address+path, nil)
			w.ok(err)
			got, err := c.Do(r)
			w.ok(err)
			return refusal(w.T, got)
		}
		for _, path := range calls {
			for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete, http.MethodOptions, "BREW"} {
				if status, code := do(method, path); status != http.StatusMethodNotAllowed || code != "invalid_argument" {
					w.Errorf("%s %s: status %d, code %q", method, path, status, code)
				}
			}
		}
		for _, path := range []string{"/", "/index.html", "/umbel.v1.WorkflowService/", "/umbel.v1.Nobody/Begin", "/umbel.v1.WorkflowService/begin"} {
			if status, code := do(http.MethodGet, path); status < 400 || status > 499 || code == "" {
				w.Errorf("GET %s: status %d, code %q", path, status, code)
			}
		}
		if status, _ := do(http.MethodGet, "/healthz"); status != http.StatusOK {
			w.Errorf("/healthz: status %d", status)
		}
	})
}

// Foreign bytes on the port end their connection, in bounded time, and nothing else.
func TestForeignBytes(t *testing.T) {
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	head := "POST " + umbelv1connect.WorkflowServiceBeginProcedure + " HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
	inWorld(t, func(w *world, h2 bool) {
		for _, c := range []struct {
			name, send string
			answer     string // what must be in it, if there is one
			within     time.Duration
		}{
			{"nothing", "", "", 10 * time.Second},
			{"noise", "\x00\x01\xff\xfe\r\n\r\n", "400", 10 * time.Second},
			{"a TLS hello", "\x16\x03\x01\x00\xf4\x01\x00\x00\xf0\x03\x03" + strings.Repeat("x", 300), "", 10 * time.Second},
			{"Redis", "*1\r\n$4\r\nPING\r\n\r\n", "400", time.Second},
			{"half a header", "POST /umbel", "", 10 * time.Second},
			{"a huge header", "GET / HTTP/1.1\r\nA: " + strings.Repeat("a", 128<<10) + "\r\n", "431", time.Second},
			{"half a body", head + "Content-Length: 100\r\n\r\n{", "", 2 * time.Minute},
			{"two lengths", head + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "400", time.Second},
			{"bad chunks", head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", `"code":`, 2 * time.Minute},
			{"two requests in one write", head + "Content-Length: 2\r\n\r\n{}" + head + "Content-Length: 2\r\nConnection: close\r\n\r\n{}", "invalid_argument", time.Second},
			{"HTTP/2 without frames", preface, "", 2 * time.Minute},
			{"HTTP/2 with noise", preface + strings.Repeat("\xff", 1000), "", time.Second},
			{"HTTP/2 data before headers", preface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00" + "\x00\x00\x01\x00\x00\x00\x00\x00\x01x", "", 2 * time.Minute},
		} {
			conn, err := w.net.DialContext(w.Context(), "", address)
			w.ok(err)
			began := time.Now()
			go func() { _, _ = io.WriteString(conn, c.send) }()
			answer, _ := io.ReadAll(conn)
			if took := time.Since(began); took > c.within || !strings.Contains(string(answer), c.answer) {
				w.Errorf("%s: %.200q after %v", c.name, answer, took)
			}
			_ = conn.Close()
		}
		if _, err := dial(w.T, transport(&w.net, h2), address).Begin(w.Context(), umbel.BeginRequest{Namespace: ns, WorkflowID: "w"}); err != nil {
			w.Error("afterwards:", err)
		}
	})
}

// A peer that sends a byte now and then is cut off, headers after 10 s, a body after two minutes.
func TestSlowPeer(t *testing.T) {
	inWorld(t, func(w *world, _ bool) {
		for what, start := range map[string]string{
			"header": "POST / HTTP/1.1\r\n",
			"body":   "POST " + umbelv1connect.WorkerServiceReportProcedure + " HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n",
		} {
			conn, err := w.net.DialContext(w.Context(), "", address)
			w.ok(err)
			began := time.Now()
			var sent sync.WaitGroup
			sent.Go(func() {
				for _, err := io.WriteString(conn, start); err == nil; _, err = io.WriteString(conn, "a") {
					time.Sleep(3 * time.Second)
				}
			})
			_, _ = io.ReadAll(conn)
			if took := time.Since(began); took > 125*time.Second {
				w.Errorf("%s: cut off after %v", what, took)
			}
			_ = conn.Close()
			sent.Wait()
		}
	})
}

// What peers do wrong is no error of the server's in its log.
func TestHostilePeersFillNoLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		w := &world{T: t, redis: testredis.Mini(t)}
		w.node = serve(t, w.redis, &w.net, address, slog.New(slog.NewTextHandler(&log, nil)))
		time.Sleep(time.Second)
		synctest.Wait()
		before := log.Len()
		for _, send := range []string{"\x00\r\n\r\n", "GET / HTTP/1.1\r\nA: " + strings.Repeat("a", 128<<10), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff"} {
			for range 10 {
				conn, err := w.net.DialContext(t.Context(), "", address)
				w.ok(err)
				go func() { _, _ = io.WriteString(conn, send) }()
				_, _ = io.ReadAll(conn)
				_ = conn.Close()
			}
		}
		w.node.end()
		if said := log.String()[before:]; said != "" {
			t.Errorf("the log says %s", said)
		}
	})
}
