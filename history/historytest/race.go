package historytest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/history"
)

func raceCases() []testCase {
	return []testCase{
		{"RacingDuplicates_Case11_Promise6", case11},
		{"RacingOrdinals_Promise6", racingOrdinals},
		{"RacingDispatches_Promise8", racingDispatches},
		{"RacingWriters_Promise8", racingWriters},
	}
}

const writers = 8

// settle completes as a writer does that shares its token: on a conflict it reads the head and tries again.
func (s *suite) settle(ctx context.Context, wf history.Workflow, at history.Position, c history.Completion) (history.Outcome, error) {
	for {
		outcome, _, err := s.Store.Complete(ctx, wf, at, c)
		if !errors.Is(err, umbel.ErrConflict) {
			return outcome, err
		}
		if at.Head, err = s.Store.Head(ctx, wf); err != nil {
			return "", err
		}
	}
}

// The outcomes of two attempts of one row race 1,000 times over: one terminal, and the losers are dropped.
func case11(s *suite) {
	wf := flow()
	at := s.acquire(wf)
	s.dispatch(wf, &at, items(3)...)
	s.failAttempt(wf, &at, 1, 1)
	var recorded, dropped atomic.Int64
	var wg sync.WaitGroup
	for who := range writers {
		wg.Go(func() {
			for i := range 1000 / writers {
				c := success(1, 1+(who+i)%2)
				if i%3 == 0 {
					c = failure(1, c.Attempt)
				}
				if i%2 == 0 {
					c.RunID = wf.RunID
				}
				outcome, err := s.settle(s.Context(), wf, at, c)
				switch {
				case err != nil:
					s.Errorf("complete: %v", err)
				case outcome == history.Recorded:
					recorded.Add(1)
				case outcome == history.Dropped:
					dropped.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if r, d := recorded.Load(), dropped.Load(); r != 1 || d != 1000-1 {
		s.Errorf("%d recorded and %d dropped, want 1 and 999", r, d)
	}
	for _, o := range []int64{0, 2} {
		if _, err := s.settle(s.Context(), wf, at, success(o, 1)); err != nil {
			s.Errorf("complete: %v", err)
		}
	}
	s.checkTerminals(wf, 3)
}

// Every outcome is reported by every writer: each ordinal has one terminal, and each was recorded once.
func racingOrdinals(s *suite) {
	const n = 100
	wf := flow()
	at := s.acquire(wf)
	s.dispatch(wf, &at, items(n)...)
	var recorded [n]atomic.Int64
	var wg sync.WaitGroup
	for who := range 4 {
		wg.Go(func() {
			for i := range n {
				o := (i*[]int{1, 3, 7, 99}[who] + who) % n // each in an order of its own
				outcome, err := s.settle(s.Context(), wf, at, success(int64(o), 1))
				if err != nil {
					s.Errorf("complete: %v", err)
				}
				if outcome == history.Recorded {
					recorded[o].Add(1)
				}
			}
		})
	}
	wg.Wait()
	for o := range recorded {
		if got := recorded[o].Load(); got != 1 {
			s.Errorf("ordinal %d was recorded %d times", o, got)
		}
	}
	if head := s.head(wf); head != 3*n {
		s.Errorf("head is %d, want %d", head, 3*n)
	}
	s.checkTerminals(wf, n)
}

// Of racing dispatches at one position exactly one is applied, whole.
func racingDispatches(s *suite) {
	wf := flow()
	at := s.acquire(wf)
	for round := range 10 {
		var won atomic.Int64
		var wg sync.WaitGroup
		for who := range 4 {
			wg.Go(func() {
				its := items(5)
				for i := range its {
					its[i].Key = fmt.Sprintf("of %d", who)
				}
				_, err := s.Store.Dispatch(s.Context(), wf, at, its)
				switch {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, umbel.ErrConflict):
					s.Errorf("dispatch: %v", err)
				}
			})
		}
		wg.Wait()
		at.Head = s.head(wf)
		if won.Load() != 1 || at.Head != int64(10*(round+1)) {
			s.Fatalf("round %d: %d dispatches were applied, head %d", round, won.Load(), at.Head)
		}
	}
	events, rows := s.all(wf), s.scan(wf)
	if len(events) != 100 || len(rows) != 50 {
		s.Fatalf("%d events and %d rows, want 100 and 50", len(events), len(rows))
	}
	for i, e := range events {
		if e.Seq != int64(i)+1 || e.Ordinal != int64(i/2) || e.Type == umbel.ActivityScheduled && e.Key != events[i-i%10].Key {
			s.Errorf("event %d is %+v", i+1, e)
		}
	}
}

// Writers that take the token from each other write nothing after they have lost it.
func racingWriters(s *suite) {
	wf := flow()
	var applied atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				at, err := s.Store.Acquire(s.Context(), wf)
				if err != nil {
					s.Errorf("acquire: %v", err)
					return
				}
				for range 3 {
					head, err := s.Store.Append(s.Context(), wf, at, []umbel.Event{started(0, 1), started(1, 1)})
					switch {
					case err == nil:
						applied.Add(1)
						at.Head = head
					case !errors.Is(err, umbel.ErrFenced) && !errors.Is(err, umbel.ErrConflict):
						s.Errorf("append: %v", err)
					}
				}
			}
		})
	}
	wg.Wait()
	events := s.all(wf)
	if int64(len(events)) != 2*applied.Load() {
		s.Errorf("%d appends were applied and left %d events", applied.Load(), len(events))
	}
	for i, e := range events {
		if e.Seq != int64(i)+1 || e.Ordinal != int64(i%2) {
			s.Fatalf("event %d is %+v: appends are mixed", i+1, e)
		}
	}
}
