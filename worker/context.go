package worker

import (
	"context"
	"log/slog"

	"github.com/umbelhq/umbel"
)

// Info says which attempt a handler runs. ctx is the handler's, or one made from it; it may have ended. On any
// other context Info panics, since a handler that goes on without its idempotency key does harm.
func Info(ctx context.Context) umbel.Info {
	h, ok := ctx.Value(holdKey{}).(*hold)
	if !ok {
		panic("worker: Info needs the context that the worker passed to the handler, or one made from it: pass that on instead of context.Background") //nolint:forbidigo // documented: a handler cannot go on
	}
	deadline, _ := h.Deadline()
	r := &h.row
	return umbel.Info{
		Namespace: r.Namespace, TaskQueue: r.TaskQueue, Node: r.Node,
		WorkflowID: r.WorkflowID, RunID: r.RunID, Ordinal: r.Ordinal,
		Key: r.Key, Type: r.Type, Attempt: r.Attempt,
		DispatchKey:    umbel.DispatchKey(r.WorkflowID, r.Ordinal),
		IdempotencyKey: umbel.IdempotencyKey(r.WorkflowID, r.RunID, r.Ordinal),
		Token:          r.Token,
		Deadline:       deadline,
		LastFailure:    r.LastFailure,
	}
}

// Logger is [Config.Logger] with the namespace, task queue, worker, workflow, row and attempt of a handler's
// context. On any other context it is slog.Default().
func Logger(ctx context.Context) *slog.Logger {
	h, ok := ctx.Value(holdKey{}).(*hold)
	if !ok {
		return slog.Default()
	}
	return h.worker.log.With("workflow", string(h.row.WorkflowID), "row", h.row.Ordinal, "attempt", h.row.Attempt)
}
