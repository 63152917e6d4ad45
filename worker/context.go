package worker

import (
	"context"
	"log/slog"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/attempt"
)

// Info says which attempt a handler runs. ctx is the handler's, or one made from it; it may have ended. Tests make
// one with umbeltest.Context. On any other context Info panics, since a handler that goes on without its idempotency
// key does harm.
func Info(ctx context.Context) umbel.Info {
	a, ok := attempt.From(ctx)
	if !ok {
		panic("worker: Info needs the context that the worker passed to the handler, or one made from it: pass that on instead of context.Background, and call handlers with umbeltest.Context in tests") //nolint:forbidigo // documented: a handler cannot go on
	}
	return a.Info()
}

// Logger is [Config.Logger] with the namespace, task queue, worker, workflow, row and attempt of a handler's
// context. On any other context it is slog.Default().
func Logger(ctx context.Context) *slog.Logger {
	a, ok := attempt.From(ctx)
	if !ok {
		return slog.Default()
	}
	return a.Logger()
}
