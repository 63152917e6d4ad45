// Package outboxtest says what an outbox.Store is, in tests: a conformance suite ([Run]), a plain in-memory
// reference ([Model]) and a property test that drives a store and the reference side by side ([Property]).
package outboxtest

import (
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/outbox"
)

// Backend is a store under test, empty, with what the suite needs besides. Store, Now and WaitUntil are
// required.
type Backend struct {
	// Store is what is tested.
	Store outbox.Store
	// Now reads the store's own clock: Redis's TIME.
	Now func(t *testing.T) time.Time
	// WaitUntil returns once the store's clock has reached the instant. A virtual clock is moved there; a
	// real one is waited for. The suite never sleeps itself.
	WaitUntil func(t *testing.T, at time.Time)
	// Virtual says that the store's clock stands still but for WaitUntil. Else the suite keeps clear of what
	// the next millisecond may change.
	Virtual bool
	// Dump renders everything that is stored, so that the suite can tell that nothing changed. Nil: it
	// compares what Get and Scan show.
	Dump func(t *testing.T) string
	// Shard returns the shard of a workflow: the order of claims binds the rows of one shard. Nil: all are in
	// one.
	Shard func(namespace string, id umbel.WorkflowID) int
	// Invariant reports what is wrong with the stored state, after any operation. Nil: nothing to check.
	Invariant func(t *testing.T) error
	// ForgetClaimedAt makes a claimed row one without a ClaimedAt, as no Store can. Nil: the suite leaves
	// such rows out.
	ForgetClaimedAt func(t *testing.T, key outbox.Key)
	// Close ends the backend. [Property] opens many and closes each; else it is called when the test ends.
	// Nil: nothing to end.
	Close func()
}

// Run runs the conformance suite. It opens a backend for each case. Where testing.Short is set, cases of more
// than 8,000 rows are left out.
func Run(t *testing.T, open func(t *testing.T) Backend) {
	t.Helper()
	RunIn(t, nil, open)
}

// RunIn is [Run] with each case, its backend included, inside in:
//
//	outboxtest.RunIn(t, synctest.Test, open)
func RunIn(t *testing.T, in In, open func(t *testing.T) Backend) {
	t.Helper()
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			in.Run(t, func(t *testing.T) {
				b := open(t)
				if b.Close != nil {
					t.Cleanup(b.Close)
				}
				s := &suite{T: t, Backend: b}
				c.run(s)
				s.invariant()
			})
		})
	}
}

// testCase is one case of the suite. It starts no subtests: a synctest bubble allows none.
type testCase struct {
	name string
	run  func(s *suite)
}

func cases() []testCase {
	var all []testCase
	for _, group := range [][]testCase{
		appendCases(), claimCases(), scopeCases(), rearmCases(), transitionCases(), spanCases(), raceCases(),
		payloadCases(), nameCases(), validationCases(), contextCases(), sizeCases(),
	} {
		all = append(all, group...)
	}
	return all
}

// Clock is a clock that moves when it is told to. It is safe for concurrent use through a [Model], which
// reads it under its lock, as long as nobody moves it meanwhile.
type Clock struct{ now time.Time }

// NewClock returns a clock that stands in the middle of a millisecond, so that code that confuses rounding
// up and down shows.
func NewClock() *Clock {
	return &Clock{now: time.Date(2026, 11, 30, 12, 0, 0, int(400*time.Microsecond), time.UTC)}
}

// Now returns what the clock shows.
func (c *Clock) Now() time.Time { return c.now }

// WaitUntil moves the clock forward to at.
func (c *Clock) WaitUntil(at time.Time) {
	if at.After(c.now) {
		c.now = at
	}
}
