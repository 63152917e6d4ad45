package historytest

import (
	"fmt"
	"slices"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/history"
	"github.com/umbelhq/umbel/outbox"
)

func completeCases() []testCase {
	return []testCase{
		{"Complete", complete},
		{"FirstTerminalWins_Promise6", firstWins},
		{"RunFence_Promise9", runFence},
		{"ImplicitRunTakesAnyRun_Promise9", implicitRun},
		{"OutboxEndIsNoTerminal", outboxEndIsNoTerminal},
		{"AppendedTerminal_Promise6", appendedTerminal},
		{"CompleteRefused", completeRefused},
	}
}

// One terminal event, the head moves by one, the row is resolved. Claimed or not is all the same.
func complete(s *suite) {
	wf := flow()
	since := s.now()
	at := s.acquire(wf)
	s.dispatch(wf, &at, items(6)...)
	want := dispatched(0, items(6)...)
	if claimed := s.claim(3); len(claimed) != 3 {
		s.Fatalf("claimed %d rows", len(claimed))
	}
	for _, c := range []history.Completion{success(5, 1), failure(0, 1), success(2, 1), failure(3, 1)} {
		s.complete(wf, &at, c, history.Recorded)
		want = append(want, terminal(c))
		status := outbox.Done
		if c.Failure != nil {
			status = outbox.Failed
		}
		if r := s.row(wf, c.Ordinal); r.Status != status || !r.ClaimedAt.IsZero() {
			s.Errorf("row %d is %s, claimed at %v; want %s, never", c.Ordinal, r.Status, r.ClaimedAt, status)
		}
	}
	s.wantEvents(wf, 1, since, want...)
	var left []int64
	for _, r := range s.claim(10) {
		left = append(left, r.Ordinal)
	}
	if !slices.Equal(left, []int64{4}) {
		s.Errorf("what is left to claim: %v, want 4", left)
	}
}

// A second outcome of an ordinal is dropped: nothing is written, the head stays.
func firstWins(s *suite) {
	wf := flow()
	at := s.acquire(wf)
	s.dispatch(wf, &at, items(2)...)
	for o, first := range []history.Completion{success(0, 1), failure(1, 1)} {
		first.RunID = wf.RunID
		s.complete(wf, &at, first, history.Recorded)
		s.unchanged("a second outcome", wf, func() {
			for _, c := range []history.Completion{success(int64(o), 1), failure(int64(o), 1), first} {
				for _, run := range []umbel.RunID{"", wf.RunID} {
					c.RunID = run
					s.complete(wf, &at, c, history.Dropped)
				}
			}
			// With a stale head it is either of two refusals.
			outcome, _, err := s.Store.Complete(s.Context(), wf, history.Position{Token: at.Token, Head: at.Head - 1}, first)
			if err != nil {
				s.refused("stale", err, umbel.ErrConflict)
			} else if outcome != history.Dropped {
				s.Errorf("a stale duplicate was %s", outcome)
			}
		})
		at = s.acquire(wf) // by another writer, too
		s.complete(wf, &at, first, history.Dropped)
	}
}

// An outcome that carries another run's ID is dropped, for open and for resolved ordinals.
func runFence(s *suite) {
	wf := flow()
	at := s.acquire(wf)
	s.dispatch(wf, &at, items(4)...)
	s.complete(wf, &at, success(3, 1), history.Recorded)
	s.unchanged("an outcome of another run", wf, func() {
		for _, run := range []umbel.RunID{"run2", "run", "run11", "RUN1"} {
			for o := range int64(4) {
				for _, c := range []history.Completion{success(o, 1), failure(o, 1)} {
					c.RunID = run
					s.complete(wf, &at, c, history.Dropped)
				}
			}
		}
	})
	for o, run := range []umbel.RunID{wf.RunID, "", wf.RunID} {
		c := success(int64(o), 1)
		c.RunID = run
		s.complete(wf, &at, c, history.Recorded)
		s.complete(wf, &at, c, history.Dropped)
	}
}

// Where only one side names a run there is no mismatch.
func implicitRun(s *suite) {
	wf := history.Workflow{ID: "w"}
	at := s.acquire(wf)
	s.dispatch(wf, &at, items(2)...)
	for o, run := range []umbel.RunID{"", "somebody's"} {
		c := success(int64(o), 1)
		c.RunID = run
		s.complete(wf, &at, c, history.Recorded)
		s.complete(wf, &at, c, history.Dropped)
		c.RunID = ""
		s.complete(wf, &at, c, history.Dropped)
	}
}

// A row that was ended through the outbox has no terminal in history: its first outcome is still recorded,
// once. The row stays as it ended.
func outboxEndIsNoTerminal(s *suite) {
	wf := flow()
	since := s.now()
	at := s.acquire(wf)
	s.dispatch(wf, &at, items(6)...)
	want := dispatched(0, items(6)...)
	s.claim(3)
	s.unchangedHistory(wf, func() {
		for _, o := range []int64{0, 3} { // claimed, fresh
			s.ok(s.outbox().Complete(s.Context(), key(wf, o)))
			s.ok(s.outbox().Fail(s.Context(), key(wf, o+1)))
			s.ok(s.outbox().Cancel(s.Context(), key(wf, o+2)))
		}
	})
	before := s.scan(wf)
	for o := range int64(6) {
		c := success(o, 1)
		if o%2 == 1 {
			c = failure(o, 1)
		}
		s.complete(wf, &at, c, history.Recorded)
		s.complete(wf, &at, c, history.Dropped)
		s.complete(wf, &at, success(o, 1), history.Dropped)
		want = append(want, terminal(c))
	}
	s.wantEvents(wf, 1, since, want...)
	for i, r := range s.scan(wf) {
		if r.Status != before[i].Status {
			s.Errorf("row %d was %s and became %s", i, before[i].Status, r.Status)
		}
	}
}

// unchangedHistory checks that f writes no event.
func (s *suite) unchangedHistory(wf history.Workflow, f func()) {
	s.Helper()
	head, before := s.head(wf), s.all(wf)
	f()
	if got := s.head(wf); got != head {
		s.Errorf("the head moved from %d to %d", head, got)
	}
	if d := diff(before, s.all(wf)); d != "" {
		s.Errorf("history changed:\n%s", d)
	}
}

// A terminal comes by Complete, which resolves the row, and in no other way.
func appendedTerminal(s *suite) {
	wf := flow()
	at := s.acquire(wf)
	s.dispatch(wf, &at, items(3)...)
	cancelled := umbel.Event{Type: umbel.ActivityCancelled, Row: umbel.Row{Ordinal: 2}}
	s.unchanged("an append of a terminal", wf, func() {
		for _, e := range []umbel.Event{terminal(success(0, 1)), terminal(failure(1, 1)), cancelled} {
			for _, events := range [][]umbel.Event{{e}, {started(0, 2), e}} {
				_, err := s.Store.Append(s.Context(), wf, at, events)
				s.refused(string(e.Type), err, umbel.ErrInvalid)
			}
		}
	})
	for o := range int64(3) {
		s.complete(wf, &at, success(o, 1), history.Recorded)
	}
}

func completeRefused(s *suite) {
	wf := flow()
	at := s.acquire(wf)
	s.dispatch(wf, &at, items(2)...)
	large := umbel.Payload{Data: make([]byte, umbel.MaxPayloadBytes+1)}
	s.unchanged("an invalid completion", wf, func() {
		for _, c := range []history.Completion{
			{Ordinal: -1, Attempt: 1}, {Ordinal: umbel.MaxOrdinal + 1, Attempt: 1}, {Ordinal: 1<<63 - 1, Attempt: 1},
			{Attempt: 0}, {Attempt: -1}, {Attempt: umbel.MaxAttempts + 1}, {Attempt: 1 << 40},
			{Attempt: 1, Result: large}, {Attempt: 1, Result: umbel.Payload{ContentType: "a\n"}}, {Attempt: 1, RunID: "\xff"},
		} {
			_, _, err := s.Store.Complete(s.Context(), wf, at, c)
			s.refused(fmt.Sprintf("ordinal %d, attempt %d, run %q, result of %d bytes, %q",
				c.Ordinal, c.Attempt, c.RunID, len(c.Result.Data), c.Result.ContentType), err, umbel.ErrInvalid, umbel.ErrLimit)
		}
	})
	s.complete(wf, &at, success(0, 1), history.Recorded)
}
