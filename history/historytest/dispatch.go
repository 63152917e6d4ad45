package historytest

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/history"
	"github.com/umbelhq/umbel/outbox"
	"github.com/umbelhq/umbel/outbox/outboxtest"
)

func dispatchCases() []testCase {
	return []testCase{
		{"Dispatch_Promise1", dispatch},
		{"DispatchNothing", dispatchNothing},
		{"DispatchAgain", dispatchAgain},
		{"DispatchAmongOtherEvents", dispatchAmong},
		{"DispatchOfTheImplicitRun", dispatchImplicit},
		{"DispatchRefused_Promise1", dispatchRefused},
		{"DispatchedRowsAreDue", dispatchedRowsAreDue},
	}
}

// mixed are n items with routes and keys of their own.
func mixed(n int) []history.Item {
	its := items(n)
	for i := range its {
		its[i].ActivityType = []string{"act", "other"}[i%2]
		its[i].TaskQueue = []string{"", "q", "a:b"}[i%3]
		its[i].Node = []string{"", "", "n1", "n2"}[i%4]
		if i%5 == 0 {
			its[i].Key = fmt.Sprintf("item %d", i)
		}
	}
	return its
}

// wantRows checks the rows that a dispatch staged from an ordinal on.
func (s *suite) wantRows(wf history.Workflow, first int64, since time.Time, its ...history.Item) {
	s.Helper()
	rows := s.scan(wf)
	if len(rows) != int(first)+len(its) {
		s.Fatalf("%d rows, want %d", len(rows), int(first)+len(its))
	}
	until := s.now()
	for i, r := range rows[first:] {
		want := outbox.Row{
			Namespace: wf.Namespace, WorkflowID: wf.ID, Ordinal: first + int64(i), RunID: wf.RunID,
			TaskQueue: its[i].TaskQueue, Node: its[i].Node, ActivityType: its[i].ActivityType,
		}.WithDefaults()
		if err := within(r.VisibleAfter, since, until); err != nil {
			s.Fatalf("row %d: visible after %v", r.Ordinal, err)
		}
		if !bytes.Equal(r.Input.Data, its[i].Input.Data) || r.Input.ContentType != its[i].Input.ContentType {
			s.Fatalf("row %d: input %q, want %q", r.Ordinal, r.Input.Data, its[i].Input.Data)
		}
		r.VisibleAfter, r.Input = time.Time{}, umbel.Payload{}
		if fmt.Sprintf("%+v", r) != fmt.Sprintf("%+v", want) {
			s.Fatalf("row is %+v, want %+v", r, want)
		}
	}
}

// For each item in order: scheduled, then started with attempt 1, and its pending row.
func dispatch(s *suite) {
	wf := flow()
	since := s.now()
	at := s.acquire(wf)
	its := mixed(24)
	s.dispatch(wf, &at, its...)
	s.wantEvents(wf, 1, since, dispatched(0, its...)...)
	s.wantRows(wf, 0, since, its...)
}

func dispatchNothing(s *suite) {
	wf := flow()
	at := s.acquire(wf)
	for range 2 {
		s.unchanged("a dispatch of nothing", wf, func() {
			s.dispatch(wf, &at)
			head, err := s.Store.Dispatch(s.Context(), wf, at, []history.Item{})
			s.ok(err)
			if head != at.Head {
				s.Errorf("the head moved to %d", head)
			}
		})
		s.dispatch(wf, &at, items(3)...)
	}
}

// A second dispatch of a run goes on where the first ended.
func dispatchAgain(s *suite) {
	wf := flow()
	since := s.now()
	at := s.acquire(wf)
	var all []history.Item
	var want []umbel.Event
	for i, n := range []int{1, 5, 0, 99, 100, 101, 2, 250} {
		its := items(n)
		if i%2 == 1 {
			its = mixed(n)
		}
		s.dispatch(wf, &at, its...)
		want = append(want, dispatched(int64(len(all)), its...)...)
		all = append(all, its...)
		if i == 4 { // by another writer
			at = s.acquire(wf)
		}
	}
	s.wantEvents(wf, 1, since, want...)
	s.wantRows(wf, 0, since, all...)
}

func dispatchAmong(s *suite) {
	wf := flow()
	since := s.now()
	at := s.acquire(wf)
	start := umbel.Event{Type: umbel.WorkflowStarted, RunID: wf.RunID, Scheduled: 5}
	s.append(wf, &at, start)
	s.dispatch(wf, &at, items(2)...)
	s.complete(wf, &at, success(0, 1), history.Recorded)
	s.dispatch(wf, &at, items(3)...)
	s.complete(wf, &at, failure(4, 1), history.Recorded)
	asked := umbel.Event{Type: umbel.CancelRequested, Reason: "enough"}
	s.append(wf, &at, asked)
	s.wantEvents(wf, 1, since, slices.Concat(
		[]umbel.Event{start}, dispatched(0, items(2)...), []umbel.Event{terminal(success(0, 1))},
		dispatched(2, items(3)...), []umbel.Event{terminal(failure(4, 1)), asked})...)
}

// Without a run, rows belong to the workflow's implicit run.
func dispatchImplicit(s *suite) {
	wf := history.Workflow{Namespace: "n", ID: "w"}
	since := s.now()
	at := s.acquire(wf)
	s.dispatch(wf, &at, items(3)...)
	s.wantRows(wf, 0, since, items(3)...)
	for _, r := range s.scan(wf) {
		if r.RunID != "" {
			s.Errorf("row %d has the run %q", r.Ordinal, r.RunID)
		}
	}
	s.complete(wf, &at, success(1, 1), history.Recorded)
	s.wantEvents(wf, 1, since, append(dispatched(0, items(3)...), terminal(success(1, 1)))...)
}

// One bad item, and neither events nor rows appear, however many are good.
func dispatchRefused(s *suite) {
	wf := flow()
	at := s.acquire(wf)
	s.dispatch(wf, &at, items(2)...)
	long := strings.Repeat("x", umbel.MaxNameBytes+1)
	var bad []history.Item
	for _, name := range []string{long, "a\x00", "\n", "\xff"} {
		bad = append(bad,
			history.Item{ActivityType: name}, history.Item{ActivityType: "act", TaskQueue: name},
			history.Item{ActivityType: "act", Node: name}, history.Item{ActivityType: "act", Key: name},
			history.Item{ActivityType: "act", Input: umbel.Payload{ContentType: name}})
	}
	bad = append(bad, history.Item{}, history.Item{ActivityType: "act", Input: umbel.Payload{Data: make([]byte, umbel.MaxPayloadBytes+1)}})
	s.unchanged("a dispatch with a bad item", wf, func() {
		for _, it := range bad {
			_, err := s.Store.Dispatch(s.Context(), wf, at, append(items(150), it))
			s.refused(fmt.Sprintf("item %.60q", fmt.Sprint(it.ActivityType, it.TaskQueue, it.Node, it.Key)), err, umbel.ErrInvalid, umbel.ErrLimit)
		}
		its := items(umbel.MaxRoutes + 1)
		for i := range its {
			its[i].TaskQueue = fmt.Sprintf("q%d", i)
		}
		_, err := s.Store.Dispatch(s.Context(), wf, at, its)
		s.refused("a dispatch of 66 routes", err, umbel.ErrLimit)
	})
	s.dispatch(wf, &at, items(2)...)
}

func dispatchedRowsAreDue(s *suite) {
	wf := history.Workflow{Namespace: "n", ID: "w", RunID: run1}
	at := s.acquire(wf)
	its := mixed(12)
	s.dispatch(wf, &at, its...)
	for i, r := range s.claim(100) {
		if r.Ordinal != int64(i) || r.RunID != run1 || !bytes.Equal(r.Input.Data, its[i].Input.Data) || r.Attempt != 0 {
			s.Errorf("row %d was claimed as %+v", i, r)
		}
		s.complete(wf, &at, success(r.Ordinal, 1), history.Recorded)
	}
	for _, r := range s.scan(wf) {
		if r.Status != outbox.Done {
			s.Errorf("row %d is %s", r.Ordinal, r.Status)
		}
	}
}

func sizeCases() []testCase {
	n := []int{0, 1, 999, 1000, 1001, 3999, 4000, 7999, 8000}
	if outboxtest.Full() {
		n = append(n, 65535, 65536, 100_001)
	}
	var all []testCase
	for _, n := range n {
		all = append(all, testCase{fmt.Sprintf("N_%d_Case39_Promise1", n), func(s *suite) { case39(s, n) }})
	}
	return all
}

// A fan-out's events and rows appear together for any n, or, with a conflict, not at all.
func case39(s *suite, n int) {
	wf := flow()
	at := s.acquire(wf)
	its := make([]history.Item, n)
	for i := range its {
		its[i] = history.Item{ActivityType: "act", Input: umbel.Payload{Data: fmt.Appendf(nil, "%d", i)}}
	}
	if n > 0 {
		_, err := s.Store.Dispatch(s.Context(), wf, history.Position{Token: at.Token, Head: 1}, its)
		s.refused("with a stale head", err, umbel.ErrConflict)
		_, err = s.Store.Dispatch(s.Context(), wf, history.Position{Token: "x"}, its)
		s.refused("with a stale token", err, umbel.ErrFenced)
		if len(s.scan(wf)) != 0 || len(s.all(wf)) != 0 || s.head(wf) != 0 || len(s.claim(1)) != 0 {
			s.Fatal("a refused dispatch left something")
		}
	}
	s.dispatch(wf, &at, its...)
	events := s.all(wf)
	if len(events) != 2*n || s.head(wf) != int64(2*n) {
		s.Fatalf("%d events, head %d, want %d", len(events), s.head(wf), 2*n)
	}
	for i, e := range events {
		want := umbel.ActivityScheduled
		if i%2 == 1 {
			want = umbel.ActivityStarted
		}
		if e.Seq != int64(i)+1 || e.Type != want || e.Ordinal != int64(i/2) || i%2 == 0 && string(e.Input.Data) != strconv.Itoa(i/2) {
			s.Fatalf("event %d is %+v", i+1, e)
		}
	}
	next := int64(0)
	for r, err := range s.outbox().Scan(s.Context(), "", wf.ID) {
		s.ok(err)
		if r.Ordinal != next || r.Status != outbox.Pending || string(r.Input.Data) != strconv.FormatInt(next, 10) {
			s.Fatalf("row %d is %+v", next, r)
		}
		next++
	}
	if next != int64(n) {
		s.Fatalf("%d rows, want %d", next, n)
	}
	if n > 0 {
		s.complete(wf, &at, success(int64(n-1), 1), history.Recorded)
		s.complete(wf, &at, success(int64(n-1), 1), history.Dropped)
	}
}
