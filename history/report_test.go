package history

import (
	"bytes"
	"testing"

	"github.com/umbelhq/umbel"
)

// The stack of a failure is kept of the last attempt only: with the row while it may be tried again, not in history.
func TestRetriedKeepsItsStackWithTheRow(t *testing.T) {
	t.Parallel()
	stack := []byte("goroutine 1")
	f := &umbel.Failure{Message: "why", Stack: string(stack), Cause: &umbel.Failure{Message: "since", Stack: string(stack)}}
	it, err := Settled{Ending: Retried, Attempt: 1, Failure: f}.item()
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(it.Event, stack) || bytes.Count(it.Error, stack) != 2 {
		t.Errorf("event %q, record %q", it.Event, it.Error)
	}
	if !bytes.Contains(it.Event, []byte("why")) || !bytes.Contains(it.Event, []byte("since")) || f.Cause.Stack == "" {
		t.Errorf("event %q of %+v", it.Event, f)
	}
	last, err := Settled{Ending: Failed, Attempt: 2, Failure: f}.item()
	if err != nil || !bytes.Contains(last.Event, stack) {
		t.Errorf("event %q, %v", last.Event, err)
	}
}
