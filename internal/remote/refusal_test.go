package remote_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"testing"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/server"
)

// A reply that is cut off, wherever that is, is no reply: the server is unavailable, and nothing else is made of it.
func TestRepliesThatAreCutOff(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]*fake{
		"success":        {name: "a"},
		"not found":      {err: &umbel.Error{Code: umbel.CodeNotFound, WorkflowID: "w"}},
		"already exists": {err: &umbel.Error{Code: umbel.CodeAlreadyExists, RunID: "r"}},
		"invalid":        {err: umbel.Invalid("namespace", "\n", "must not contain control characters")},
		"internal":       {err: &umbel.Error{Code: umbel.CodeInternal}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inSite(t, two[:1], func(s *site) {
				part := -1
				whole := 0
				s.serve("a:1", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					rec := httptest.NewRecorder()
					server.NewHandler(says).ServeHTTP(rec, r)
					resp := rec.Result()
					resp.ContentLength = int64(rec.Body.Len())
					reply, err := httputil.DumpResponse(resp, true)
					if err != nil {
						s.Error(err)
					}
					whole = len(reply)
					conn, _, err := http.NewResponseController(w).Hijack()
					if err != nil {
						s.Error(err)
						return
					}
					if part >= 0 {
						reply = reply[:part]
					}
					_, _ = conn.Write(reply)
					_ = conn.Close()
				}))
				want := func(target error) {
					s.Helper()
					if _, err := s.begin(); !errors.Is(err, target) {
						s.Errorf("%d bytes of %d: %v, want %v", part, whole, err, target)
					}
				}
				var all error
				if says.err != nil {
					all = &umbel.Error{Code: umbel.CodeOf(says.err)}
				}
				want(all)
				for part = range whole {
					want(umbel.ErrUnavailable)
				}
			})
		})
	}
}
