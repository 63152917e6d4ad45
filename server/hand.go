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
		reply := &replyWriter{ResponseWriter: w, ctx: r.Context()}
		returned := false
		defer func() { // also of a handler that panics because its connection is gone
			if len(h.rows) == 0 {
				return
			}
			if returned && reply.arrived(r) {
				h.server.delivered(h.rows)
				return
			}
			h.server.claimer.giveBack(context.WithoutCancel(r.Context()), h.rows)
		}()
		next.ServeHTTP(reply, r.WithContext(context.WithValue(r.Context(), handKey{}, h)))
		returned = true
	})
}

// replyWriter notes whether a reply is lost: its peer was gone before the first byte, or a write failed. That the peer
// goes later says nothing: it may have all that it wants.
type replyWriter struct {
	http.ResponseWriter

	ctx   context.Context //nolint:containedctx // of the request that is answered
	begun bool
	lost  bool
}

func (w *replyWriter) Write(p []byte) (int, error) {
	if !w.begun {
		w.begun, w.lost = true, w.ctx.Err() != nil
	}
	n, err := w.ResponseWriter.Write(p)
	w.lost = w.lost || err != nil
	return n, err
}

// arrived sends what is left of the reply, and reports whether all of it has left this process, as far as that can be known.
// HTTP/2 writes behind the handler's back, but ends the reply only when the handler has returned: until then a peer that
// has gone does not have it.
func (w *replyWriter) arrived(r *http.Request) bool {
	w.Flush()
	return !w.lost && (r.ProtoMajor < 2 || r.Context().Err() == nil)
}

// Flush implements http.Flusher, which gRPC wants.
func (w *replyWriter) Flush() {
	w.lost = http.NewResponseController(w.ResponseWriter).Flush() != nil || w.lost
}

// Unwrap is for http.ResponseController.
func (w *replyWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
