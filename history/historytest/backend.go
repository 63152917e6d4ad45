// Package historytest says what a history.Store is, in tests: a conformance suite ([Run]), a plain in-memory
// reference ([Model]) and a property test that drives a store and the reference side by side ([Property]).
//
// What a history's outbox is, package outboxtest says; run its suite on [history.Store.Outbox] too.
package historytest

import (
	"testing"
	"time"

	"github.com/umbelhq/umbel/history"
	"github.com/umbelhq/umbel/outbox/outboxtest"
)

// Backend is a store under test, empty, with what the suite needs besides. Store and Now are required.
type Backend struct {
	// Store is what is tested.
	Store history.Store
	// Now reads the store's own clock: Redis's TIME.
	Now func(t *testing.T) time.Time
	// Dump renders everything that is stored, so that the suite can tell that nothing changed. Nil: it
	// compares what Read and the outbox show.
	Dump func(t *testing.T) string
	// SetHead makes n the head of a workflow that exists, as if it had that many events. Nil: the suite does
	// not try the largest sequence number.
	SetHead func(t *testing.T, wf history.Workflow, n int64)
	// Invariant reports what is wrong with the stored state, after any operation. Nil: nothing to check.
	Invariant func(t *testing.T) error
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
//	historytest.RunIn(t, synctest.Test, open)
func RunIn(t *testing.T, in outboxtest.In, open func(t *testing.T) Backend) {
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
		appendCases(), dispatchCases(), completeCases(), attemptCases(), raceCases(), payloadCases(), readCases(),
		recorderCases(), limitCases(), nameCases(), sizeCases(),
	} {
		all = append(all, group...)
	}
	return all
}
