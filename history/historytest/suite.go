package historytest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/history"
	"github.com/umbelhq/umbel/outbox"
)

// suite is one case under way: the backend, and its calls with the errors checked.
type suite struct {
	*testing.T
	Backend
}

// run1 is the run of most workflows here.
const run1 umbel.RunID = "run1"

// flow is the workflow of a case that needs only one.
func flow() history.Workflow { return history.Workflow{ID: "w", RunID: run1} }

func (s *suite) now() time.Time { return s.Now(s.T) }

func (s *suite) outbox() outbox.Store { return s.Store.Outbox() }

func (s *suite) invariant() {
	s.Helper()
	if s.Invariant != nil {
		if err := s.Invariant(s.T); err != nil {
			s.Errorf("invariant: %v", err)
		}
	}
}

func (s *suite) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("unexpected error: %v", err)
	}
}

// refused checks that err is an *umbel.Error of the kind of one of the sentinels.
func (s *suite) refused(what string, err error, as ...error) {
	s.Helper()
	if _, ok := errors.AsType[*umbel.Error](err); !ok {
		s.Errorf("%s: %v, want an *umbel.Error", what, err)
		return
	}
	if !slices.ContainsFunc(as, func(target error) bool { return errors.Is(err, target) }) {
		s.Errorf("%s: %v, want one of %v", what, err, as)
	}
}

// unchanged checks that f leaves the heads, the events, the rows and all else that is stored as they were.
func (s *suite) unchanged(what string, wf history.Workflow, f func()) {
	s.Helper()
	see := func() []string {
		lines := []string{fmt.Sprintf("head %d", s.head(wf))}
		for _, e := range s.all(wf) {
			lines = append(lines, fmt.Sprintf("%+v %+v", e, e.Failure))
		}
		for _, r := range s.scan(wf) {
			lines = append(lines, fmt.Sprintf("%+v", r))
		}
		if s.Dump != nil {
			lines = append(lines, strings.Split(s.Dump(s.T), "\n")...)
		}
		return lines
	}
	before := see()
	f()
	if after := see(); !slices.Equal(before, after) {
		s.Errorf("%s changed what is stored:\n%s", what, gocmp.Diff(before, after))
	}
}

func (s *suite) acquire(wf history.Workflow) history.Position {
	s.Helper()
	at, err := s.Store.Acquire(s.Context(), wf)
	s.ok(err)
	return at
}

func (s *suite) head(wf history.Workflow) int64 {
	s.Helper()
	head, err := s.Store.Head(s.Context(), wf)
	s.ok(err)
	return head
}

// dispatch dispatches at the position and moves it.
func (s *suite) dispatch(wf history.Workflow, at *history.Position, items ...history.Item) {
	s.Helper()
	head, err := s.Store.Dispatch(s.Context(), wf, *at, items)
	s.ok(err)
	if want := at.Head + 2*int64(len(items)); head != want {
		s.Fatalf("a dispatch of %d moved the head from %d to %d, want %d", len(items), at.Head, head, want)
	}
	at.Head = head
}

// append appends at the position and moves it.
func (s *suite) append(wf history.Workflow, at *history.Position, events ...umbel.Event) {
	s.Helper()
	head, err := s.Store.Append(s.Context(), wf, *at, events)
	s.ok(err)
	if want := at.Head + int64(len(events)); head != want {
		s.Fatalf("%d events moved the head from %d to %d, want %d", len(events), at.Head, head, want)
	}
	at.Head = head
}

// complete completes at the position, moves it, and checks the outcome.
func (s *suite) complete(wf history.Workflow, at *history.Position, c history.Completion, want history.Outcome) {
	s.Helper()
	outcome, head, err := s.Store.Complete(s.Context(), wf, *at, c)
	s.ok(err)
	move := int64(0)
	if outcome == history.Recorded {
		move = 1
	}
	if outcome != want || head != at.Head+move {
		s.Fatalf("complete of %d: %s, head from %d to %d; want %s", c.Ordinal, outcome, at.Head, head, want)
	}
	at.Head = head
}

// all reads the whole history of a workflow from 1.
func (s *suite) all(wf history.Workflow) []umbel.Event {
	s.Helper()
	var all []umbel.Event
	from := int64(1)
	for {
		page, err := s.Store.Read(s.Context(), wf, from, 5000)
		s.ok(err)
		if len(page) == 0 {
			return all
		}
		all = append(all, page...)
		from = page[len(page)-1].Seq + 1
	}
}

// wantEvents checks the history from sequence number from on: contiguous, and each event recorded since.
func (s *suite) wantEvents(wf history.Workflow, from int64, since time.Time, want ...umbel.Event) {
	s.Helper()
	got := s.all(wf)
	for i, e := range got {
		if e.Seq != int64(i)+1 {
			s.Fatalf("event %d has the sequence number %d", i+1, e.Seq)
		}
	}
	if head := s.head(wf); head != int64(len(got)) {
		s.Fatalf("head is %d after %d events", head, len(got))
	}
	got = got[min(int(from-1), len(got)):]
	until := s.now()
	for i := range got {
		if err := within(got[i].At, since, until); err != nil {
			s.Errorf("event %d: at %v", got[i].Seq, err)
		}
	}
	want = slices.Clone(want)
	for i := range want {
		want[i].Seq = from + int64(i)
	}
	if d := diff(want, got); d != "" {
		s.Fatalf("events differ (-want +got):\n%s", d)
	}
}

// diff compares events but for when they were recorded.
func diff(want, got []umbel.Event) string {
	if slices.EqualFunc(want, got, same) {
		return ""
	}
	return gocmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(umbel.Event{}, "At"))
}

// same is what diff looks for, at a speed for a hundred thousand events.
func same(a, b umbel.Event) bool {
	if !samePayload(a.Input, b.Input) || !samePayload(a.Result, b.Result) || !sameFailure(a.Failure, b.Failure) ||
		!a.NextVisible.Equal(b.NextVisible) || !a.ClaimedAt.Equal(b.ClaimedAt) {
		return false
	}
	return a.Seq == b.Seq && a.Type == b.Type && a.Ordinal == b.Ordinal && a.Key == b.Key && a.Row.Type == b.Row.Type &&
		a.Attempt == b.Attempt && a.RunID == b.RunID && a.Scheduled == b.Scheduled && a.TaskQueue == b.TaskQueue &&
		a.Node == b.Node && a.Worker == b.Worker && a.Status == b.Status && a.Reason == b.Reason
}

func samePayload(a, b umbel.Payload) bool {
	return a.ContentType == b.ContentType && bytes.Equal(a.Data, b.Data)
}

func sameFailure(a, b *umbel.Failure) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Type == b.Type && a.Message == b.Message && a.Stack == b.Stack && a.Attempt == b.Attempt &&
		a.NonRetryable == b.NonRetryable && sameFailure(a.Cause, b.Cause)
}

// within checks that at is an instant that the store's clock showed between two readings, in whole
// milliseconds.
func within(at, before, after time.Time) error {
	if at.Before(before.Truncate(time.Millisecond)) || at.After(after) || !at.Equal(at.Truncate(time.Millisecond)) {
		return fmt.Errorf("%v is no whole millisecond from %v to %v", at, before, after)
	}
	return nil
}

func (s *suite) scan(wf history.Workflow) []outbox.Row {
	s.Helper()
	var rows []outbox.Row
	for r, err := range s.outbox().Scan(s.Context(), wf.Namespace, wf.ID) {
		s.ok(err)
		rows = append(rows, r)
	}
	return rows
}

func (s *suite) row(wf history.Workflow, ordinal int64) outbox.Row {
	s.Helper()
	r, err := s.outbox().Get(s.Context(), key(wf, ordinal))
	s.ok(err)
	return r
}

func (s *suite) claim(limit int) []outbox.Row {
	s.Helper()
	rows, err := s.outbox().Claim(s.Context(), limit)
	s.ok(err)
	return rows
}

func key(wf history.Workflow, ordinal int64) outbox.Key {
	return outbox.Row{Namespace: wf.Namespace, WorkflowID: wf.ID, Ordinal: ordinal}.Key()
}

// items are n plain items.
func items(n int) []history.Item {
	its := make([]history.Item, n)
	for i := range its {
		its[i] = history.Item{ActivityType: "act", Input: text(fmt.Sprintf("in %d", i))}
	}
	return its
}

func text(s string) umbel.Payload { return umbel.Payload{ContentType: "text/plain", Data: []byte(s)} }

// dispatched are the events of a dispatch whose first ordinal is given.
func dispatched(first int64, its ...history.Item) []umbel.Event {
	var events []umbel.Event
	for i, it := range its {
		events = append(events, scheduled(first+int64(i), it), started(first+int64(i), 1))
	}
	return events
}

func success(ordinal int64, attempt int) history.Completion {
	return history.Completion{Ordinal: ordinal, Attempt: attempt, Result: text(fmt.Sprintf("out %d/%d", ordinal, attempt))}
}

func failure(ordinal int64, attempt int) history.Completion {
	return history.Completion{
		Ordinal: ordinal, Attempt: attempt,
		Failure: &umbel.Failure{Type: "Boom", Message: fmt.Sprintf("%d failed", ordinal), Attempt: attempt},
	}
}
