package history_test

import (
	"context"
	"errors"
	"testing"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/history"
	"github.com/umbelhq/umbel/history/historytest"
	"github.com/umbelhq/umbel/outbox/outboxtest"
)

// How a Recorder works with a store, package historytest tests on every one. Here is what it does when the
// store fails.

var errDown = &umbel.Error{Code: umbel.CodeUnavailable, Reason: "down"}

// faulty is a model that fails, or that others write to in between.
type faulty struct {
	*historytest.Model

	acquire, head, write error
	between              func() // runs before each Complete
	completes            int
}

func (f *faulty) Acquire(ctx context.Context, wf history.Workflow) (history.Position, error) {
	if f.acquire != nil {
		return history.Position{}, f.acquire
	}
	return f.Model.Acquire(ctx, wf)
}

func (f *faulty) Head(ctx context.Context, wf history.Workflow) (int64, error) {
	if f.head != nil {
		return 0, f.head
	}
	return f.Model.Head(ctx, wf)
}

func (f *faulty) Append(ctx context.Context, wf history.Workflow, at history.Position, events []umbel.Event) (int64, error) {
	if f.write != nil {
		return 0, f.write
	}
	return f.Model.Append(ctx, wf, at, events)
}

func (f *faulty) Dispatch(ctx context.Context, wf history.Workflow, at history.Position, items []history.Item) (int64, error) {
	if f.write != nil {
		return 0, f.write
	}
	return f.Model.Dispatch(ctx, wf, at, items)
}

func (f *faulty) Complete(ctx context.Context, wf history.Workflow, at history.Position, c history.Completion) (history.Outcome, int64, error) {
	f.completes++
	if f.between != nil {
		f.between()
	}
	if f.write != nil {
		return "", 0, f.write
	}
	return f.Model.Complete(ctx, wf, at, c)
}

var wf = history.Workflow{ID: "w", RunID: "run1"}

// setup returns a Recorder that has dispatched four items: its head is 8.
func setup(t *testing.T) (*history.Recorder, *faulty) {
	t.Helper()
	f := &faulty{Model: historytest.NewModel(outboxtest.NewClock().Now)}
	r, err := history.Open(t.Context(), f, wf)
	if err != nil {
		t.Fatal(err)
	}
	it := history.Item{ActivityType: "act"}
	if err := r.Dispatch(t.Context(), it, it, it, it); err != nil {
		t.Fatal(err)
	}
	wantHead(t, r, 8)
	return r, f
}

func wantHead(t *testing.T, r *history.Recorder, want int64) {
	t.Helper()
	if got := r.Head(); got != want {
		t.Errorf("head is %d, want %d", got, want)
	}
}

func TestOpenFails(t *testing.T) {
	t.Parallel()
	f := &faulty{Model: historytest.NewModel(outboxtest.NewClock().Now), acquire: errDown}
	if r, err := history.Open(t.Context(), f, wf); r != nil || !errors.Is(err, umbel.ErrUnavailable) {
		t.Errorf("Open = %v, %v", r, err)
	}
}

// A write that failed for whatever reason leaves the head: if it was applied after all, the next write is a
// conflict and not a hole.
func TestRecorderKeepsItsHeadOnError(t *testing.T) {
	t.Parallel()
	for _, fault := range []error{errDown, umbel.ErrFenced, umbel.ErrLimit, errors.New("odd")} {
		r, f := setup(t)
		f.write = fault
		if err := r.Append(t.Context(), umbel.Event{Type: umbel.CancelRequested}); !errors.Is(err, fault) {
			t.Errorf("append: %v, want %v", err, fault)
		}
		if err := r.Dispatch(t.Context(), history.Item{ActivityType: "act"}); !errors.Is(err, fault) {
			t.Errorf("dispatch: %v, want %v", err, fault)
		}
		outcome, err := r.Complete(t.Context(), history.Completion{Attempt: 1})
		if outcome != "" || !errors.Is(err, fault) {
			t.Errorf("complete: %q, %v, want %v", outcome, err, fault)
		}
		if f.completes != 1 {
			t.Errorf("complete was tried %d times after %v", f.completes, fault)
		}
		wantHead(t, r, 8)
		f.write = nil
		if outcome, err := r.Complete(t.Context(), history.Completion{Attempt: 1}); outcome != history.Recorded || err != nil {
			t.Errorf("complete once the store is back: %q, %v", outcome, err)
		}
		wantHead(t, r, 9)
	}
}

// others completes an ordinal past the Recorder, with its token.
func others(t *testing.T, f *faulty, token history.Token, ordinal int64) {
	t.Helper()
	head, err := f.Model.Head(t.Context(), wf)
	if err != nil {
		t.Fatal(err)
	}
	at := history.Position{Token: token, Head: head}
	if _, _, err := f.Model.Complete(t.Context(), wf, at, history.Completion{Ordinal: ordinal, Attempt: 1}); err != nil {
		t.Fatal(err)
	}
}

// tokenOf takes the token that a second Recorder, which the caller uses from then on, has.
func tokenOf(t *testing.T, f *faulty) (*history.Recorder, history.Token) {
	t.Helper()
	spy := &spy{Store: f}
	r, err := history.Open(t.Context(), spy, wf)
	if err != nil {
		t.Fatal(err)
	}
	return r, spy.token
}

type spy struct {
	history.Store

	token history.Token
}

func (s *spy) Acquire(ctx context.Context, wf history.Workflow) (history.Position, error) {
	at, err := s.Store.Acquire(ctx, wf)
	s.token = at.Token
	return at, err
}

// A completion goes on however often others were faster.
func TestCompleteAfterConflicts(t *testing.T) {
	t.Parallel()
	_, f := setup(t)
	r, token := tokenOf(t, f)
	next := int64(0)
	f.between = func() {
		if next < 3 {
			others(t, f, token, next)
			next++
		}
	}
	outcome, err := r.Complete(t.Context(), history.Completion{Ordinal: 3, Attempt: 1})
	if outcome != history.Recorded || err != nil {
		t.Fatalf("complete: %q, %v", outcome, err)
	}
	if f.completes != 4 {
		t.Errorf("tried %d times, want 4", f.completes)
	}
	wantHead(t, r, 12)
}

// One that others recorded meanwhile is dropped, and the Recorder knows the new head.
func TestCompleteOfWhatOthersRecorded(t *testing.T) {
	t.Parallel()
	_, f := setup(t)
	r, token := tokenOf(t, f)
	others(t, f, token, 2)
	outcome, err := r.Complete(t.Context(), history.Completion{Ordinal: 2, Attempt: 1})
	if outcome != history.Dropped || err != nil {
		t.Errorf("complete: %q, %v", outcome, err)
	}
	wantHead(t, r, 9)
}

func TestCompleteCannotRereadTheHead(t *testing.T) {
	t.Parallel()
	_, f := setup(t)
	r, token := tokenOf(t, f)
	others(t, f, token, 2)
	f.head = errDown
	if outcome, err := r.Complete(t.Context(), history.Completion{Attempt: 1}); outcome != "" || !errors.Is(err, umbel.ErrUnavailable) {
		t.Errorf("complete: %q, %v", outcome, err)
	}
	if err := r.Reload(t.Context()); !errors.Is(err, umbel.ErrUnavailable) {
		t.Errorf("reload: %v", err)
	}
	wantHead(t, r, 8)
}

// A completion that meets a conflict every time ends with its context.
func TestCompleteEndsWithItsContext(t *testing.T) {
	t.Parallel()
	r, f := setup(t)
	ctx, cancel := context.WithCancel(t.Context())
	f.write = umbel.ErrConflict
	f.between = func() {
		if f.completes == 3 {
			cancel()
		}
	}
	outcome, err := r.Complete(ctx, history.Completion{Attempt: 1})
	if outcome != "" || !errors.Is(err, context.Canceled) {
		t.Errorf("complete: %q, %v", outcome, err)
	}
	if f.completes != 3 {
		t.Errorf("tried %d times, want 3", f.completes)
	}
}

// Appends and dispatches do not try again: what they would write may rest on what the head was.
func TestConflictIsTheCallersToSee(t *testing.T) {
	t.Parallel()
	_, f := setup(t)
	r, token := tokenOf(t, f)
	others(t, f, token, 0)
	if err := r.Append(t.Context(), umbel.Event{Type: umbel.CancelRequested}); !errors.Is(err, umbel.ErrConflict) {
		t.Errorf("append: %v", err)
	}
	if err := r.Dispatch(t.Context(), history.Item{ActivityType: "act"}); !errors.Is(err, umbel.ErrConflict) {
		t.Errorf("dispatch: %v", err)
	}
	wantHead(t, r, 8)
	if err := r.Reload(t.Context()); err != nil {
		t.Errorf("reload: %v", err)
	}
	wantHead(t, r, 9)
	if err := r.Append(t.Context(), umbel.Event{Type: umbel.CancelRequested}); err != nil {
		t.Errorf("append after a reload: %v", err)
	}
	wantHead(t, r, 10)
}
