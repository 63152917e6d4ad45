package stack

import (
	"errors"

	"github.com/umbelhq/umbel"
)

// history reads all events of a workflow, and checks what holds of every history: it is contiguous (promise 8), each
// ordinal has at most one terminal (6), each terminal and failed attempt follows its start (7).
func (s *stack) history(e umbel.Engine, id umbel.WorkflowID) []umbel.Event {
	s.t.Helper()
	var all []umbel.Event
	for from := int64(1); ; {
		r, err := e.History(s.t.Context(), umbel.HistoryRequest{Namespace: ns, WorkflowID: id, From: from})
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, r.Events...)
		from += int64(len(r.Events))
		if from > r.Head || len(r.Events) == 0 {
			if from != r.Head+1 {
				s.t.Fatalf("history of %q ends at %d, its head is %d", id, from-1, r.Head)
			}
			break
		}
	}
	if err := checkHistory(all); err != nil {
		s.t.Fatalf("history of %q: %v", id, err)
	}
	return all
}

func checkHistory(events []umbel.Event) error {
	type attempt struct {
		ordinal int64
		attempt int
	}
	started, ended := map[attempt]bool{}, map[int64]bool{}
	for i, e := range events {
		at := attempt{e.Ordinal, e.Attempt}
		switch {
		case e.Seq != int64(i+1):
			return errors.New("not contiguous")
		case e.Type == umbel.ActivityStarted:
			if started[at] {
				return errors.New("an attempt is started twice")
			}
			started[at] = true
		case e.Type == umbel.ActivityAttemptFailed:
			if !started[at] || e.Failure == nil {
				return errors.New("an attempt failed that was not started, or without its error")
			}
		case e.Type.Terminal():
			if ended[e.Ordinal] {
				return errors.New("an ordinal has two terminals")
			}
			ended[e.Ordinal] = true
			if e.Type != umbel.ActivityCancelled && !started[at] {
				return errors.New("a terminal of an attempt that was not started")
			}
		}
	}
	return nil
}

// of counts the events of a type.
func of(events []umbel.Event, t umbel.EventType) int {
	n := 0
	for _, e := range events {
		if e.Type == t {
			n++
		}
	}
	return n
}

// failures counts the events with a failure of a type.
func failures(events []umbel.Event, kind string) int {
	n := 0
	for _, e := range events {
		if e.Failure != nil && e.Failure.Type == kind {
			n++
		}
	}
	return n
}
