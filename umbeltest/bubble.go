package umbeltest

import (
	"testing"
	"testing/synctest"
	"time"
)

// inBubble reports whether the caller runs in a bubble of testing/synctest. Package synctest has no question for
// that, but Wait must not be called outside of a bubble, and panics there before it does anything. The clock would
// be a guess: a bubble begins in the year 2000, but may have slept since, and a machine's clock may be wrong.
//
// Inside a bubble the other goroutines have come to rest when it returns.
func inBubble() (in bool) {
	defer func() {
		if v := recover(); v != nil {
			in = v != "goroutine is not in a bubble" // another of its panics: two goroutines of a bubble wait at once
		}
	}()
	synctest.Wait()
	return true
}

// ofBubble reports whether tb is a bubble's own T: that one has no Deadline, and says so by a panic. Its cleanups run
// in the bubble; those of another run when it is too late to end what is left there.
func ofBubble(tb testing.TB) (of bool) {
	t, ok := tb.(interface{ Deadline() (time.Time, bool) })
	if !ok {
		return true // a wrapper, which knows what it wraps
	}
	defer func() { of = recover() != nil }()
	t.Deadline()
	return false
}

// advance sleeps in the bubble, then waits until what that woke has come to rest.
func advance(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
