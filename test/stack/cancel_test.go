package stack

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/worker"
)

// Promise 12: once Cancel has returned nothing of the run is claimed, while workers of two servers poll all the time.
func TestPromise12NothingIsClaimedAfterCancel(t *testing.T) {
	onEach(t, func(s *stack) {
		a, b := s.open(), s.open()
		for round := range 5 {
			id := umbel.WorkflowID('a' + rune(round))
			s.start(a, id, rows(5000))
			var cancelled atomic.Bool
			var wg sync.WaitGroup
			var claimed, late atomic.Int64
			for i, e := range []umbel.Engine{a, b, a, b} {
				wg.Go(func() {
					for {
						after := cancelled.Load() // before the poll is sent
						r := pollRequest(20 + i)
						got, err := e.Poll(s.t.Context(), r)
						if err != nil {
							s.t.Error(err)
							return
						}
						claimed.Add(int64(len(got.Rows)))
						time.Sleep(time.Millisecond) // or a bubble's time stands still
						if after {
							late.Add(int64(len(got.Rows)))
							return
						}
					}
				})
			}
			s.eventually("some rows are claimed", func() bool { return claimed.Load() > 100 })
			n := s.cancel(b, id)
			cancelled.Store(true)
			wg.Wait()
			if late.Load() > 0 {
				s.t.Fatalf("%d rows were claimed after the cancel", late.Load())
			}
			if n != 5000 {
				s.t.Errorf("cancelled %d rows", n)
			}
			if d := s.describe(a, id); d.Status != umbel.StatusCancelled || d.Counts.Cancelled != 5000 {
				s.t.Errorf("%+v", d)
			}
		}
	})
}

// Promise 12: a running activity sees its context cancelled within a second.
func TestPromise12RunningIsCancelled(t *testing.T) {
	onEach(t, func(s *stack) {
		e := s.open()
		var running atomic.Int64
		ended := make(chan error, 10)
		s.work(e, worker.Config{}, func(w *worker.Worker) {
			worker.Handle(w, double, func(ctx context.Context, _ int) (int, error) {
				running.Add(1)
				<-ctx.Done()
				ended <- context.Cause(ctx)
				return 0, ctx.Err()
			})
		})
		run, err := client.FanOut(s.t.Context(), s.connect(e), double, slices.Values(numbers(10)), client.WorkflowID("w"))
		if err != nil {
			s.t.Fatal(err)
		}
		s.eventually("all run", func() bool { return running.Load() == 10 })
		if err := run.Cancel(s.t.Context(), "enough"); err != nil {
			s.t.Fatal(err)
		}
		began := time.Now()
		for range 10 {
			if err := <-ended; !errors.Is(err, umbel.ErrCancelled) {
				s.t.Errorf("cause is %v", err)
			}
		}
		if took := time.Since(began); s.virtual() && took > 1100*time.Millisecond || took > 10*time.Second {
			s.t.Errorf("contexts ended after %v", took)
		}
		e2, ok := errors.AsType[*umbel.FanOutError](run.Wait(s.t.Context()))
		if !ok || e2.Status != umbel.StatusCancelled || e2.Counts.Cancelled != 10 {
			s.t.Errorf("%+v", e2)
		}
		events := s.history(e, "w")
		if of(events, umbel.CancelRequested) != 1 || of(events, umbel.ActivityCancelled) != 10 || of(events, umbel.WorkflowClosed) != 1 {
			s.t.Errorf("%d events", len(events))
		}
	})
}

// Cases 28 and 32: single rows are cancelled; the run closes with the last open one and says what became of each.
func TestCase28And32CancelRows(t *testing.T) {
	onEach(t, func(s *stack) {
		e := s.open()
		s.start(e, "w", rows(10))
		if n := s.cancel(e, "w", 3); n != 1 { // fresh
			s.t.Errorf("cancelled %d", n)
		}
		held := s.claim(e, 5)
		if n := s.cancel(e, "w", held[0].Ordinal, 3); n != 1 { // claimed, and one that is cancelled already
			s.t.Errorf("cancelled %d", n)
		}
		if v := s.verdict(e, done(held[0]), umbel.Dropped); v.Attempt != 0 {
			s.t.Errorf("told attempt %d, want 0 for cancelled", v.Attempt)
		}
		s.finish(e, held[1:])
		s.finish(e, s.claim(e, 3))
		s.counts(e, "w", umbel.Counts{Scheduled: 10, Pending: 1, Completed: 7, Cancelled: 2})
		if n := s.cancel(e, "w", 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1000); n != 1 { // the last one open, and some that are none
			s.t.Errorf("cancelled %d", n)
		}
		if d := s.describe(e, "w"); d.Status != umbel.StatusFailed || d.Counts.Completed != 7 || d.Counts.Cancelled != 3 {
			s.t.Errorf("%+v", d)
		}
		r, err := e.Results(s.t.Context(), umbel.ResultsRequest{Namespace: ns, WorkflowID: "w", Ordered: true})
		if err != nil || len(r.Results) != 10 || !r.Done {
			s.t.Fatalf("%d results, %v", len(r.Results), err)
		}
		n := 0
		for _, res := range r.Results {
			if res.Status == umbel.StatusCancelled && errors.Is(res.Err, umbel.ErrCancelled) {
				n++
			}
		}
		if n != 3 {
			s.t.Errorf("%d results are cancelled", n)
		}
		s.history(e, "w")
	})
}

// Case 61: complete, cancel and late success of ordinals that are still inside a span: they are never claimed.
func TestCase61ResolvedInsideASpan(t *testing.T) {
	onMini(t, func(s *stack) {
		e := s.open()
		const n = 2000
		s.start(e, "w", rows(n), retry(exactly(time.Hour, 5))...)
		resolved := map[int64]bool{}
		var some []int64
		for o := int64(0); o < n; o += 3 {
			some = append(some, o)
			resolved[o] = true
		}
		for part := range slices.Chunk(some, 500) {
			if got := s.cancel(e, "w", part...); got != int64(len(part)) {
				s.t.Fatalf("cancelled %d of %d", got, len(part))
			}
		}
		// late successes of rows that were released since, and are back in the queue
		held := s.claim(e, 300)
		for i, r := range held {
			if resolved[r.Ordinal] {
				s.t.Fatalf("ordinal %d was claimed though it is resolved", r.Ordinal)
			}
			s.verdict(e, released(r), umbel.Released)
			if i%2 == 0 {
				s.verdict(e, done(r), umbel.Recorded)
				resolved[r.Ordinal] = true
			}
		}
		for open := n - len(resolved); open > 0; {
			held := s.claim(e, min(open, 200))
			open -= len(held)
			for _, r := range held {
				if resolved[r.Ordinal] {
					s.t.Fatalf("ordinal %d was claimed though it is resolved", r.Ordinal)
				}
				resolved[r.Ordinal] = true
			}
			s.finish(e, held)
		}
		if d := s.describe(e, "w"); d.Status == umbel.StatusRunning {
			s.t.Errorf("%+v", d)
		}
		s.history(e, "w")
	})
}
