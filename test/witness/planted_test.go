package witness

import (
	"slices"
	"strings"
	"testing"

	"github.com/umbelhq/umbel"
)

// The checker itself: a history that is right passes, and one with a fault in it does not.
func TestCheckerSeesWhatIsPlanted(t *testing.T) {
	t.Parallel()
	event := func(kind umbel.EventType, ordinal int64, attempt int) umbel.Event {
		e := umbel.Event{Type: kind, Row: umbel.Row{Ordinal: ordinal, Attempt: attempt}}
		if kind == umbel.ActivityAttemptFailed {
			e.Failure = &umbel.Failure{Type: umbel.FailureLeaseExpired}
		}
		return e
	}
	right := []umbel.Event{
		event(umbel.WorkflowStarted, 0, 0),
		event(umbel.ActivityScheduled, 0, 0), event(umbel.ActivityStarted, 0, 1),
		event(umbel.ActivityScheduled, 1, 0), event(umbel.ActivityStarted, 1, 1),
		event(umbel.ActivityCompleted, 0, 1),
		event(umbel.ActivityAttemptFailed, 1, 1), event(umbel.ActivityStarted, 1, 2),
		event(umbel.ActivityCompleted, 1, 2),
		event(umbel.FanOutDecided, 0, 0), event(umbel.WorkflowClosed, 0, 0),
	}
	drop := func(i int) func([]umbel.Event) []umbel.Event {
		return func(es []umbel.Event) []umbel.Event { return slices.Delete(es, i, i+1) }
	}
	again := func(i int) func([]umbel.Event) []umbel.Event {
		return func(es []umbel.Event) []umbel.Event { return slices.Insert(es, i+1, es[i]) }
	}
	for _, tc := range []struct {
		name   string
		change func([]umbel.Event) []umbel.Event
		says   string // nothing: it is right
	}{
		{"right", func(es []umbel.Event) []umbel.Event { return es }, ""},
		{"a terminal twice", again(5), "which is resolved by"},
		{"a terminal missing", drop(5), "1 resolved"},
		{"an attempt that never started", drop(7), "which has not started"},
		{"a start without the end of the attempt before", drop(6), "has not ended"},
		{"a start twice", again(2), "twice"},
		{"a failure twice", again(6), "twice"},
		{"an ordinal twice", again(1), "twice"},
		{"an ordinal that nobody scheduled", drop(3), "was not scheduled"},
		{"the terminal of another attempt", func(es []umbel.Event) []umbel.Event { es[8].Attempt = 3; return es }, "not started"},
		{"closed twice", again(10), "after"},
		{"not closed", drop(10), "ends with"},
		{"no beginning", drop(0), "after"},
		{"a gap", nil, "follows event"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			events := slices.Clone(right)
			if tc.change != nil {
				events = tc.change(events)
			}
			c := NewChecker()
			for i, e := range events {
				e.Seq = int64(i) + 1
				if tc.change == nil && i > 4 {
					e.Seq++
				}
				c.Event(e)
			}
			c.End(2)
			if said := strings.Join(c.Problems, "\n"); (said == "") != (tc.says == "") || !strings.Contains(said, tc.says) {
				t.Errorf("it says %q, want %q", said, tc.says)
			}
		})
	}
}
