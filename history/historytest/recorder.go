package historytest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/history"
	"github.com/umbelhq/umbel/outbox"
)

func recorderCases() []testCase {
	return []testCase{
		{"Recorder", recorder},
		{"RecorderIsFenced_Promise8", recorderIsFenced},
		{"RecorderRereadsTheHead", recorderRereads},
		{"RecorderConflictLeavesTheHead_Promise1", recorderConflict},
		{"RecorderRearm", recorderRearm},
		{"RecorderIsSafeForConcurrentUse", recorderConcurrent},
	}
}

func (s *suite) open(wf history.Workflow) *history.Recorder {
	s.Helper()
	r, err := history.Open(s.Context(), s.Store, wf)
	s.ok(err)
	return r
}

// wantHead checks that the Recorder and the store agree on the head.
func (s *suite) wantHead(r *history.Recorder, wf history.Workflow, want int64) {
	s.Helper()
	if r.Head() != want || s.head(wf) != want {
		s.Fatalf("the Recorder has the head %d, the store %d, want %d", r.Head(), s.head(wf), want)
	}
}

func (s *suite) record(r *history.Recorder, c history.Completion, want history.Outcome) {
	s.Helper()
	got, err := r.Complete(s.Context(), c)
	s.ok(err)
	if got != want {
		s.Fatalf("complete of %d: %s, want %s", c.Ordinal, got, want)
	}
}

func recorder(s *suite) {
	wf := flow()
	since := s.now()
	r := s.open(wf)
	s.wantHead(r, wf, 0)
	start := umbel.Event{Type: umbel.WorkflowStarted, RunID: wf.RunID, Scheduled: 3}
	s.ok(r.Append(s.Context(), start))
	s.wantHead(r, wf, 1)
	s.ok(r.Dispatch(s.Context()))
	s.wantHead(r, wf, 1)
	s.ok(r.Dispatch(s.Context(), mixed(3)...))
	s.wantHead(r, wf, 7)
	s.record(r, success(1, 1), history.Recorded)
	s.wantHead(r, wf, 8)
	s.record(r, failure(1, 1), history.Dropped)
	s.record(r, history.Completion{RunID: "run2", Ordinal: 0, Attempt: 1}, history.Dropped)
	s.wantHead(r, wf, 8)
	s.wantEvents(wf, 1, since, slices.Concat([]umbel.Event{start}, dispatched(0, mixed(3)...), []umbel.Event{terminal(success(1, 1))})...)

	again := s.open(wf) // a new life goes on where the old one was
	s.wantHead(again, wf, 8)
	s.record(again, success(0, 1), history.Recorded)
	s.wantHead(again, wf, 9)
}

// Opening a second Recorder fences the first, for good.
func recorderIsFenced(s *suite) {
	wf := flow()
	old := s.open(wf)
	s.ok(old.Dispatch(s.Context(), items(3)...))
	r := s.open(wf)
	other := s.open(history.Workflow{Namespace: "n", ID: wf.ID, RunID: "run2"}) // another workflow's Recorder fences nobody
	s.unchanged("a fenced Recorder", wf, func() {
		for range 2 {
			s.refused("append", old.Append(s.Context(), started(0, 2)), umbel.ErrFenced)
			s.refused("dispatch", old.Dispatch(s.Context(), items(2)...), umbel.ErrFenced)
			_, err := old.Complete(s.Context(), success(0, 1))
			s.refused("complete", err, umbel.ErrFenced)
			if old.Head() != 6 {
				s.Errorf("a refused write moved the Recorder's head to %d", old.Head())
			}
			s.ok(old.Reload(s.Context())) // reading anew does not help
		}
	})
	s.record(r, success(0, 1), history.Recorded)
	s.ok(r.Dispatch(s.Context(), items(1)...))
	s.wantHead(r, wf, 9)
	s.ok(other.Dispatch(s.Context(), items(1)...))

	// Fenced and stale at once.
	_, err := old.Complete(s.Context(), success(1, 1))
	s.refused("complete", err, umbel.ErrFenced)
}

// A workflow that a server serves too moves on without its Recorder: a completion reads the head anew.
func recorderRereads(s *suite) {
	wf := flow()
	since := s.now()
	r := s.open(wf)
	s.ok(r.Dispatch(s.Context(), items(4)...))
	want := dispatched(0, items(4)...)
	shared := &tokenSpy{Store: s.Store}
	r, err := history.Open(s.Context(), shared, wf)
	s.ok(err)
	elsewhere := func(c history.Completion) {
		at := history.Position{Token: shared.token, Head: s.head(wf)}
		s.complete(wf, &at, c, history.Recorded)
		want = append(want, terminal(c))
	}
	elsewhere(success(0, 1))
	elsewhere(failure(1, 1))
	s.record(r, success(2, 1), history.Recorded)
	want = append(want, terminal(success(2, 1)))
	s.wantHead(r, wf, 11)
	elsewhere(success(3, 1))
	s.record(r, success(3, 1), history.Dropped)
	s.wantHead(r, wf, 12)
	s.record(r, success(0, 1), history.Dropped)
	s.wantEvents(wf, 1, since, want...)
}

// tokenSpy lets a case write with the token of a Recorder, as a server does beside it.
type tokenSpy struct {
	history.Store

	token history.Token
}

// Acquire notes the token.
func (s *tokenSpy) Acquire(ctx context.Context, wf history.Workflow) (history.Position, error) {
	at, err := s.Store.Acquire(ctx, wf)
	s.token = at.Token
	return at, err
}

// Appends and dispatches are checked by head: a conflict is the caller's to see.
func recorderConflict(s *suite) {
	wf := flow()
	shared := &tokenSpy{Store: s.Store}
	r, err := history.Open(s.Context(), shared, wf)
	s.ok(err)
	s.ok(r.Dispatch(s.Context(), items(2)...))
	at := history.Position{Token: shared.token, Head: 4}
	s.complete(wf, &at, success(0, 1), history.Recorded)
	s.unchanged("a conflict", wf, func() {
		s.refused("dispatch", r.Dispatch(s.Context(), items(3)...), umbel.ErrConflict)
		s.refused("append", r.Append(s.Context(), started(1, 2)), umbel.ErrConflict)
	})
	if r.Head() != 4 {
		s.Errorf("a conflict moved the Recorder's head to %d", r.Head())
	}
	s.ok(r.Reload(s.Context()))
	s.wantHead(r, wf, 5)
	s.ok(r.Dispatch(s.Context(), items(3)...))
	s.wantHead(r, wf, 11)
	if rows := s.scan(wf); len(rows) != 5 {
		s.Errorf("%d rows, want 5", len(rows))
	}
}

// Re-arming after a crash is the outbox's alone: no event, and only unresolved ordinals come back.
func recorderRearm(s *suite) {
	wf := flow()
	r := s.open(wf)
	s.ok(r.Dispatch(s.Context(), mixed(8)...))
	claimed := s.claim(6)
	s.record(r, success(0, 1), history.Recorded)
	s.record(r, failure(3, 1), history.Recorded)
	rows := s.scan(wf)
	s.unchangedHistory(wf, func() { s.ok(r.Rearm(s.Context(), rows)) })
	s.wantHead(r, wf, 18)
	if len(claimed) != 6 {
		s.Fatalf("claimed %d rows, want 6", len(claimed))
	}
	var back []int64
	for _, row := range s.claim(10) {
		back = append(back, row.Ordinal)
		if row.Status != outbox.Claimed || row.Attempt != 0 || row.RunID != wf.RunID {
			s.Errorf("re-armed and claimed: %+v", row)
		}
	}
	slices.Sort(back)
	if !slices.Equal(back, []int64{1, 2, 4, 5, 6, 7}) {
		s.Errorf("claimed %v after the re-arm", back)
	}
	late := s.now().Add(time.Hour)
	for i := range rows {
		rows[i].VisibleAfter = late
	}
	s.ok(r.Rearm(s.Context(), rows))
	if due := s.claim(10); len(due) != 0 {
		s.Errorf("claimed %+v, which were re-armed for later", due)
	}
	for _, o := range []int64{1, 2, 4, 5, 6, 7} { // a late outcome is as good as any
		s.record(r, success(o, 1), history.Recorded)
	}
	s.checkTerminals(wf, 8)
}

func recorderConcurrent(s *suite) {
	const n = 60
	wf := flow()
	r := s.open(wf)
	s.ok(r.Dispatch(s.Context(), items(n)...))
	var wg sync.WaitGroup
	for who := range 4 {
		wg.Go(func() {
			for o := range int64(n) {
				_, err := r.Complete(s.Context(), success((o+int64(who)*17)%n, 1))
				if o%20 == 0 {
					err = errors.Join(err, r.Append(s.Context(), umbel.Event{Type: umbel.CancelRequested, Reason: "x"}))
				}
				if err != nil {
					s.Errorf("writer %d: %v", who, err)
				}
			}
		})
	}
	wg.Wait()
	s.wantHead(r, wf, 3*n+4*3)
	s.checkTerminals(wf, n)
}
