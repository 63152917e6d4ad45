package historytest

import (
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/history"
	"github.com/umbelhq/umbel/outbox"
)

func attemptCases() []testCase {
	return []testCase{
		{"AttemptIdentity_Promise7", attemptIdentity},
		{"LateSuccess_Promise6", lateSuccess},
		{"UnknownOrdinal_Promise7", unknownOrdinal},
		{"UnknownAttempt_Promise7", unknownAttempt},
		{"ManyAttempts_Promise7", manyAttempts},
	}
}

// failAttempt records that an attempt failed and puts the row back for the next, as a Recorder's owner does.
func (s *suite) failAttempt(wf history.Workflow, at *history.Position, ordinal int64, attempt int) []umbel.Event {
	s.Helper()
	visible := s.now().Add(-time.Second).UTC().Truncate(time.Millisecond)
	events := []umbel.Event{
		{
			Type: umbel.ActivityAttemptFailed, Row: umbel.Row{Ordinal: ordinal, Attempt: attempt},
			Failure: &umbel.Failure{Type: "Boom", Message: "try again", Attempt: attempt}, NextVisible: visible,
		},
		started(ordinal, attempt+1),
	}
	s.append(wf, at, events...)
	s.ok(s.outbox().Retry(s.Context(), key(wf, ordinal), attempt, visible))
	return events
}

// Every terminal is preceded by the start of its attempt, and names it.
func attemptIdentity(s *suite) {
	wf := flow()
	since := s.now()
	at := s.acquire(wf)
	s.dispatch(wf, &at, items(3)...)
	want := dispatched(0, items(3)...)
	want = append(want, s.failAttempt(wf, &at, 1, 1)...)
	want = append(want, s.failAttempt(wf, &at, 2, 1)...)
	want = append(want, s.failAttempt(wf, &at, 1, 2)...)
	for _, r := range s.claim(10) {
		c := success(r.Ordinal, r.Attempt+1)
		if r.Ordinal == 2 {
			c = failure(r.Ordinal, r.Attempt+1)
		}
		s.complete(wf, &at, c, history.Recorded)
		want = append(want, terminal(c))
	}
	s.wantEvents(wf, 1, since, want...)
	s.checkTerminals(wf, 3)
}

// checkTerminals checks that each of n ordinals has exactly one terminal, whose attempt was started before.
func (s *suite) checkTerminals(wf history.Workflow, n int) {
	s.Helper()
	type attempt struct {
		ordinal int64
		attempt int
	}
	begun, ended := map[attempt]bool{}, map[int64]int{}
	for _, e := range s.all(wf) {
		switch {
		case e.Type == umbel.ActivityStarted:
			begun[attempt{e.Ordinal, e.Attempt}] = true
		case e.Type.Terminal():
			ended[e.Ordinal]++
			if !begun[attempt{e.Ordinal, e.Attempt}] {
				s.Errorf("ordinal %d ended with attempt %d, which was not started", e.Ordinal, e.Attempt)
			}
		}
	}
	for o := range int64(n) {
		if ended[o] != 1 {
			s.Errorf("ordinal %d has %d terminals", o, ended[o])
		}
	}
	if len(ended) != n {
		s.Errorf("%d ordinals have terminals, want %d", len(ended), n)
	}
}

// A late success of an older attempt is recorded if the ordinal is still open: the work is done.
func lateSuccess(s *suite) {
	wf := flow()
	since := s.now()
	at := s.acquire(wf)
	s.dispatch(wf, &at, items(2)...)
	want := dispatched(0, items(2)...)
	for o := range int64(2) {
		s.claim(1)
		want = append(want, s.failAttempt(wf, &at, o, 1)...)
	}
	s.claim(1) // attempt 2 of ordinal 0 is under way, that of ordinal 1 waits
	for o := range int64(2) {
		s.complete(wf, &at, success(o, 1), history.Recorded)
		want = append(want, terminal(success(o, 1)))
		s.complete(wf, &at, success(o, 2), history.Dropped)
		if r := s.row(wf, o); r.Status != outbox.Done {
			s.Errorf("row %d is %s", o, r.Status)
		}
	}
	s.wantEvents(wf, 1, since, want...)
	if rows := s.claim(10); len(rows) != 0 {
		s.Errorf("claimed %+v of a finished run", rows)
	}
}

// An ordinal that was never scheduled cannot end.
func unknownOrdinal(s *suite) {
	wf := flow()
	at := s.acquire(wf)
	refuse := func(o int64) {
		s.unchanged("an unknown ordinal", wf, func() {
			for _, c := range []history.Completion{success(o, 1), failure(o, 1)} {
				_, _, err := s.Store.Complete(s.Context(), wf, at, c)
				s.refused("an unknown ordinal", err, umbel.ErrNotFound)
			}
		})
	}
	refuse(0)
	s.dispatch(wf, &at, items(3)...)
	refuse(3)
	refuse(umbel.MaxOrdinal)
	s.dispatch(wf, &at, items(1)...)
	s.complete(wf, &at, success(3, 1), history.Recorded)
}

// Nor can an attempt that was never started.
func unknownAttempt(s *suite) {
	wf := flow()
	at := s.acquire(wf)
	s.dispatch(wf, &at, items(3)...)
	s.failAttempt(wf, &at, 1, 1)
	s.unchanged("an unknown attempt", wf, func() {
		for o, attempts := range [][]int{{2, 3, umbel.MaxAttempts}, {3, umbel.MaxAttempts}, {2}} {
			for _, attempt := range attempts {
				_, _, err := s.Store.Complete(s.Context(), wf, at, success(int64(o), attempt))
				s.refused("an unknown attempt", err, umbel.ErrInvalid)
			}
		}
	})
	s.complete(wf, &at, success(1, 2), history.Recorded)
}

func manyAttempts(s *suite) {
	wf := flow()
	since := s.now()
	at := s.acquire(wf)
	s.dispatch(wf, &at, items(1)...)
	want := dispatched(0, items(1)...)
	for attempt := 1; attempt < umbel.MaxAttempts; attempt++ {
		if rows := s.claim(1); len(rows) != 1 || rows[0].Attempt != attempt-1 {
			s.Fatalf("claimed %+v for attempt %d", rows, attempt)
		}
		want = append(want, s.failAttempt(wf, &at, 0, attempt)...)
	}
	last := failure(0, umbel.MaxAttempts)
	s.complete(wf, &at, last, history.Recorded)
	s.wantEvents(wf, 1, since, append(want, terminal(last))...)
	s.checkTerminals(wf, 1)
}
