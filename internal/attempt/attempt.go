// Package attempt is one try at a row as its handler meets it: what its context says of it, what calls it, and
// what is reported of it. Package worker runs attempts for a server, package umbeltest without one; what they have
// in common is here, so that a handler cannot tell them apart.
package attempt

import (
	"context"
	"log/slog"

	"github.com/umbelhq/umbel"
)

// Attempt is what a handler's context knows of the attempt.
type Attempt interface {
	// Info says which attempt it is.
	Info() umbel.Info
	// Logger returns a logger whose lines name the attempt.
	Logger() *slog.Logger
}

// Key finds the [Attempt] among the values of a handler's context.
type Key struct{}

// From returns the attempt that ctx belongs to; ok is false on a context that is no handler's.
func From(ctx context.Context) (a Attempt, ok bool) {
	a, ok = ctx.Value(Key{}).(Attempt)
	return a, ok
}
