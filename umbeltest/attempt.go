package umbeltest

import (
	"cmp"
	"context"
	"log/slog"
	"testing"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/attempt"
)

// Attempt says which attempt a handler is to find itself in. The zero value is a first attempt.
type Attempt struct {
	// Info is what worker.Info returns. Fields that are zero get values: attempt 1 of ordinal 0 in the default
	// namespace and task queue, the test's name as workflow ID, and the keys that follow from them; with [Do] also the
	// type. With a Deadline the context ends then, with [umbel.ErrTimedOut].
	Info umbel.Info
}

// Context returns a context like the one that a worker passes to a handler: worker.Info and worker.Logger know the
// attempt, and logs go to the test's output. It ends when the test does, with [umbel.ErrWorkerStopping], and at the
// deadline of the attempt. To cancel a handler as a worker does, derive one with context.WithCancelCause and cancel it
// with [umbel.ErrCancelled], [umbel.ErrLeaseLost] or [umbel.ErrWorkerStopping].
func Context(tb testing.TB, a Attempt) context.Context {
	tb.Helper()
	return newLone(tb, a)
}

// lone is the context of an attempt that no server knows of.
type lone struct {
	context.Context //nolint:containedctx // it is the handler's context, with more to say

	info umbel.Info
	log  *slog.Logger
}

var _ attempt.Attempt = (*lone)(nil)

func newLone(tb testing.TB, a Attempt) *lone {
	tb.Helper()
	i := a.Info
	i.Namespace = cmp.Or(i.Namespace, umbel.DefaultNamespace)
	i.TaskQueue = cmp.Or(i.TaskQueue, umbel.DefaultTaskQueue)
	i.WorkflowID = cmp.Or(i.WorkflowID, umbel.WorkflowID(tb.Name()))
	i.RunID = cmp.Or(i.RunID, "umbeltest")
	i.Token = cmp.Or(i.Token, "umbeltest")
	i.Attempt = cmp.Or(i.Attempt, 1)
	i.DispatchKey = cmp.Or(i.DispatchKey, umbel.DispatchKey(i.WorkflowID, i.Ordinal))
	i.IdempotencyKey = cmp.Or(i.IdempotencyKey, umbel.IdempotencyKey(i.WorkflowID, i.RunID, i.Ordinal))

	ctx, cancel := context.WithCancelCause(context.WithoutCancel(tb.Context()))
	tb.Cleanup(func() { cancel(umbel.ErrWorkerStopping) })
	if !i.Deadline.IsZero() {
		var stop context.CancelFunc
		ctx, stop = context.WithDeadlineCause(ctx, i.Deadline, umbel.ErrTimedOut)
		tb.Cleanup(stop)
	}
	return &lone{Context: ctx, info: i, log: newLogger(tb)}
}

func (l *lone) Value(key any) any {
	if key == (attempt.Key{}) {
		return l
	}
	return l.Context.Value(key)
}

func (l *lone) Info() umbel.Info { return l.info }

func (l *lone) Logger() *slog.Logger {
	return l.log.With("workflow", string(l.info.WorkflowID), "row", l.info.Ordinal, "attempt", l.info.Attempt)
}
