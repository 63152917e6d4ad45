package server

import (
	"context"
	"net/http"

	"github.com/umbelhq/umbel/api/gen/umbel/v1/umbelv1connect"
	"github.com/umbelhq/umbel/outbox"
)

// hand carries what a poll claimed from the call to the writing of its reply.
type hand struct {
	server *Server
	rows   []outbox.Held
}

type handKey struct{}

// handOver marks the rows of a poll as delivered once their reply is written, and gives them back if it could not be.
// Should the server die in between, the claim is unmarked and costs no attempt.
func handOver(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != umbelv1connect.WorkerServicePollProcedure {
			next.ServeHTTP(w, r)
			return
		}
		h := &hand{}
		returned := false
		defer func() { // also of a handler that panics because its connection is gone
			if len(h.rows) == 0 {
				return
			}
			if returned && r.Context().Err() == nil && http.NewResponseController(w).Flush() == nil {
				h.server.delivered(h.rows)
				return
			}
			h.server.claimer.giveBack(context.WithoutCancel(r.Context()), h.rows)
		}()
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), handKey{}, h)))
		returned = true
	})
}
