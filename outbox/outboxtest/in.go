package outboxtest

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// In runs f as part of t, where a backend can live: testing/synctest.Test for one that needs a bubble. A nil In
// just calls f.
type In func(t *testing.T, f func(t *testing.T))

// Run runs f inside in.
func (in In) Run(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	if in == nil {
		f(t)
		return
	}
	in(t, f)
}

// Check runs one of rapid's checks inside in.
func (in In) Check(t *testing.T, rt *rapid.T, f func(t *testing.T)) {
	t.Helper()
	if in == nil {
		f(t)
		return
	}
	// A bubble has a goroutine of its own, and rapid ends a check by a panic, which has to be carried over. Rapid
	// tells panics apart by where they come from: those that only reject what was drawn must not look like
	// failures, or it would shrink a failure to one of them.
	var ended any
	in(t, func(t *testing.T) {
		defer func() { ended = recover() }()
		f(t)
	})
	switch {
	case ended == nil:
	case fmt.Sprintf("%T", ended) == "rapid.invalidData":
		rt.Skip(ended)
	default:
		panic(ended) // it was on its way
	}
}
