package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/umbelhq/umbel"
)

// faulty is an engine with a bug.
type faulty struct{ umbel.Engine }

func (faulty) List(context.Context, umbel.ListRequest) (umbel.ListReply, error) {
	panic("a bug in here")
}

// A call that panics is answered, and without the panic's words: those are for the log.
func TestCallThatPanics(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/umbel.v1.WorkflowService/List", strings.NewReader("{}"))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	NewHandler(faulty{}).ServeHTTP(w, r)
	if body := w.Body.String(); w.Code != http.StatusInternalServerError || !strings.Contains(body, "the server's log says more") || strings.Contains(body, "a bug in here") {
		t.Errorf("%d %s", w.Code, body)
	}
}
