package historytest

import (
	"strings"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/history"
)

func appendCases() []testCase {
	return []testCase{
		{"Empty", empty},
		{"AppendEveryType", appendEveryType},
		{"AppendInBatches", appendInBatches},
		{"AppendNothing", appendNothing},
		{"AppendBounded", appendBounded},
		{"AppendConflict_Promise8", appendConflict},
		{"AppendFenced_Promise8", appendFenced},
		{"AcquireAgain", acquireAgain},
	}
}

func empty(s *suite) {
	if head := s.head(flow()); head != 0 {
		s.Errorf("an unknown workflow has the head %d", head)
	}
	if events := s.all(flow()); len(events) != 0 {
		s.Errorf("an unknown workflow has the events %+v", events)
	}
	at := s.acquire(flow())
	if at.Head != 0 || at.Token == "" {
		s.Errorf("acquired %+v, want a token and the head 0", at)
	}
	if rows := s.scan(flow()); len(rows) != 0 || s.head(flow()) != 0 || len(s.all(flow())) != 0 {
		s.Errorf("acquiring a token wrote something")
	}
}

// everyType has an event of each type that is no terminal, with all the fields that its type uses.
func everyType(run umbel.RunID, at time.Time) []umbel.Event {
	at = at.UTC().Truncate(time.Millisecond)
	boom := &umbel.Failure{Type: "Boom", Message: "it broke", Attempt: 1}
	row := func(ordinal int64, attempt int) umbel.Row { return umbel.Row{Ordinal: ordinal, Attempt: attempt} }
	return []umbel.Event{
		{Type: umbel.WorkflowStarted, RunID: run, Scheduled: 3},
		{
			Type: umbel.ActivityScheduled, TaskQueue: "q", Node: "n",
			Row: umbel.Row{Ordinal: 0, Type: "act", Key: "label", Input: text("input")},
		},
		{Type: umbel.ActivityStarted, Row: row(0, 1)},
		{
			Type: umbel.ActivityAttemptFailed, Row: row(0, 1), Failure: boom, NextVisible: at.Add(time.Second),
			Worker: "worker-1", ClaimedAt: at.Add(-time.Second),
		},
		{Type: umbel.ActivityStarted, Row: row(0, 2)},
		{Type: umbel.ActivityAttemptFailed, Row: row(1, 1), Failure: boom}, // who and when is not known
		{Type: umbel.CancelRequested, Reason: "no longer wanted"},
		{Type: umbel.FanOutDecided, Status: umbel.StatusFailed},
		{Type: umbel.WorkflowClosed, Status: umbel.StatusFailed},
	}
}

func appendEveryType(s *suite) {
	wf := flow()
	since := s.now()
	at := s.acquire(wf)
	events := everyType(wf.RunID, since)
	s.append(wf, &at, events...)
	s.wantEvents(wf, 1, since, events...)
	for _, e := range events { // one by one, too
		s.append(wf, &at, e)
	}
	s.wantEvents(wf, int64(len(events))+1, since, events...)
	if rows := s.scan(wf); len(rows) != 0 {
		s.Errorf("an append made the rows %+v", rows)
	}
}

// Sequence numbers are 1, 2, 3, … whatever the size of the appends.
func appendInBatches(s *suite) {
	wf := flow()
	since := s.now()
	at := s.acquire(wf)
	var want []umbel.Event
	for _, n := range []int{1, 2, 100, 1, 999, 1000, 1001, 7} {
		batch := make([]umbel.Event, n)
		for i := range batch {
			batch[i] = started(int64(len(want)+i), 1)
		}
		s.append(wf, &at, batch...)
		want = append(want, batch...)
	}
	s.wantEvents(wf, 1, since, want...)
}

func appendNothing(s *suite) {
	wf := flow()
	at := s.acquire(wf)
	s.unchanged("nothing", wf, func() { s.append(wf, &at) })
	s.append(wf, &at, started(0, 1))
	s.unchanged("nothing", wf, func() { s.append(wf, &at) })
}

// writes are the three ways to write at a position.
func (s *suite) writes(wf history.Workflow) map[string]func(history.Position) error {
	return map[string]func(history.Position) error{
		"append": func(at history.Position) error {
			_, err := s.Store.Append(s.Context(), wf, at, []umbel.Event{started(0, 2)})
			return err
		},
		"dispatch": func(at history.Position) error {
			_, err := s.Store.Dispatch(s.Context(), wf, at, items(3))
			return err
		},
		"complete": func(at history.Position) error {
			_, _, err := s.Store.Complete(s.Context(), wf, at, success(0, 1))
			return err
		},
	}
}

// A head that is not the head is a conflict, in either direction, and changes neither events nor rows.
func appendConflict(s *suite) {
	wf := flow()
	at := s.acquire(wf)
	for _, head := range []int64{1, 2, history.MaxSeq} {
		s.unchanged("a conflict", wf, func() {
			for name, write := range s.writes(wf) { // there is no row to complete either
				s.refused(name, write(history.Position{Token: at.Token, Head: head}), umbel.ErrConflict, umbel.ErrNotFound)
			}
		})
	}
	s.dispatch(wf, &at, items(4)...)
	for _, head := range []int64{0, 1, 7, 9, history.MaxSeq} {
		s.unchanged("a conflict", wf, func() {
			for name, write := range s.writes(wf) {
				s.refused(name, write(history.Position{Token: at.Token, Head: head}), umbel.ErrConflict)
			}
		})
	}
	for _, write := range s.writes(wf) { // and none of it stands in the way
		at.Head = s.head(wf)
		s.ok(write(at))
	}
}

// A token that is not the one in force is of no use, whatever it expects.
func appendFenced(s *suite) {
	wf := flow()
	for _, token := range []history.Token{"", "x", "0"} {
		s.unchanged("a write without a token", wf, func() {
			for name, write := range s.writes(wf) {
				s.refused(name, write(history.Position{Token: token}), umbel.ErrFenced, umbel.ErrNotFound)
			}
		})
	}
	old := s.acquire(wf)
	s.dispatch(wf, &old, items(2)...)
	at := s.acquire(wf)
	if at.Token == old.Token || at.Head != old.Head {
		s.Fatalf("acquired %+v after %+v", at, old)
	}
	other := s.acquire(history.Workflow{ID: "other"})
	for _, token := range []history.Token{old.Token, other.Token, "", "x", at.Token + " ", at.Token[:len(at.Token)-1]} {
		s.unchanged("a fenced write", wf, func() {
			for name, write := range s.writes(wf) {
				s.refused(name, write(history.Position{Token: token, Head: at.Head}), umbel.ErrFenced)
				s.refused(name+" with a stale head", write(history.Position{Token: token, Head: 1}), umbel.ErrFenced, umbel.ErrConflict)
			}
		})
	}
	for _, write := range s.writes(wf) {
		at.Head = s.head(wf)
		s.ok(write(at))
	}
}

// Every token is another, and only the last is good.
func acquireAgain(s *suite) {
	wf := flow()
	seen := map[history.Token]bool{}
	var last history.Position
	for range 20 {
		last = s.acquire(wf)
		if seen[last.Token] {
			s.Fatalf("token %q was handed out twice", last.Token)
		}
		seen[last.Token] = true
	}
	delete(seen, last.Token)
	for token := range seen {
		_, err := s.Store.Append(s.Context(), wf, history.Position{Token: token}, []umbel.Event{started(0, 1)})
		s.refused("an older token", err, umbel.ErrFenced)
	}
	s.append(wf, &last, started(0, 1))
}

// What a call appends is one entry, which a reader reads at once: it is bounded in events and in bytes.
func appendBounded(s *suite) {
	wf := flow()
	at := s.acquire(wf)
	small := make([]umbel.Event, umbel.MaxPageItems+1)
	for i := range small {
		small[i] = umbel.Event{Type: umbel.CancelRequested}
	}
	large := umbel.Event{Type: umbel.CancelRequested, Reason: strings.Repeat("x", umbel.MaxStageBytes+1)}
	s.unchanged("an append that is too large", wf, func() {
		for what, events := range map[string][]umbel.Event{
			"events": small, "bytes": {large, small[0]}, "bytes in the second": {small[0], large},
		} {
			_, err := s.Store.Append(s.Context(), wf, at, events)
			s.refused("too many "+what, err, umbel.ErrLimit)
		}
	})
	for _, events := range [][]umbel.Event{small[1:], {large}} {
		head, err := s.Store.Append(s.Context(), wf, at, events)
		s.ok(err)
		if head != at.Head+int64(len(events)) {
			s.Fatalf("the head is %d after %d events at %d", head, len(events), at.Head)
		}
		at.Head = head
	}
}
