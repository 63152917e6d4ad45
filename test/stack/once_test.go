package stack

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/worker"
)

// delivery is an attempt as a worker is handed it.
type delivery struct {
	ordinal int64
	attempt int
}

// Must show 4, promise 3: 100,000 rows, a tenth of them due in one millisecond, two servers, eight workers, no fault:
// each (ordinal, attempt) is delivered once.
func TestMustShow4DeliveredOnce(t *testing.T) {
	n := 100_000
	if testing.Short() {
		n = 10_000
	}
	onReal(t, func(s *stack) {
		a, b := s.open(), s.open()
		var seen tally[delivery]
		for i := range 8 {
			e := []umbel.Engine{a, b}[i%2]
			s.work(e, worker.Config{Identity: "w" + strconv.Itoa(i), Concurrency: 100}, func(w *worker.Worker) {
				worker.Handle(w, double, func(ctx context.Context, in int) (int, error) {
					info := worker.Info(ctx)
					seen.add(delivery{info.Ordinal, info.Attempt})
					if in%100 == 0 && info.Attempt == 1 {
						return 0, errFirst
					}
					return 2 * in, nil
				})
			})
		}
		at := time.Now().Add(2 * time.Second).Truncate(time.Millisecond)
		items := client.Map(slices.Values(numbers(n)), func(i int) umbel.Item[int] {
			it := umbel.Item[int]{Input: i}
			if i%10 == 0 {
				it.NotBefore = at
			}
			return it
		})
		run, err := client.FanOutItems(s.t.Context(), s.connect(a), double, items, client.WorkflowID("w"),
			client.Retry(exactly(time.Millisecond, 3)))
		if err != nil {
			s.t.Fatal(err)
		}
		got, err := run.Gather(s.t.Context())
		if err != nil || len(got) != n {
			s.t.Fatalf("%d results, %v", len(got), err)
		}
		for i, v := range got {
			if v != 2*i {
				s.t.Fatalf("result %d is %d", i, v)
			}
		}
		if sum, most := seen.sum(); sum != n+n/100 || most != 1 {
			s.t.Errorf("%d deliveries of %d attempts, one of them %d times", sum, n+n/100, most)
		}
		s.history(b, "w")
	})
}

// Case 39: the sizes at which something changes hands.
func TestCase39Sizes(t *testing.T) {
	sizes := []int{0, 1, 999, 1000, 1001, 3999, 4000, 7999, 8000}
	if !testing.Short() {
		sizes = append(sizes, 65535, 65536, 100_001)
	}
	onReal(t, func(s *stack) {
		e := s.open()
		s.work(e, worker.Config{}, register)
		for _, n := range sizes {
			run, err := client.FanOut(s.t.Context(), s.connect(e), double, slices.Values(numbers(n)))
			if err != nil {
				s.t.Fatalf("N = %d: %v", n, err)
			}
			got, err := run.Gather(s.t.Context())
			if err != nil || len(got) != n || n > 0 && got[n-1] != 2*(n-1) {
				s.t.Fatalf("N = %d: %d results, %v", n, len(got), err)
			}
		}
	})
}

// Promise 10 and the end of a run: whoever reports last, the run is decided once and closed once, and those who wait
// hear of it.
func TestPromise10ClosedOnce(t *testing.T) {
	onEach(t, func(s *stack) {
		a, b := s.open(), s.open()
		for round := range 20 {
			id := umbel.WorkflowID("w" + strconv.Itoa(round))
			s.start(a, id, rows(8))
			held := s.claim(a, 8)
			waited := make(chan umbel.Status, 2)
			for _, e := range []umbel.Engine{a, b} {
				go func() {
					d, err := e.Describe(s.t.Context(), umbel.DescribeRequest{Namespace: ns, WorkflowID: id, Wait: umbel.MaxPollWait})
					if err != nil {
						s.t.Error(err)
					}
					waited <- d.Status
				}()
			}
			var wg sync.WaitGroup
			for i, r := range held {
				wg.Go(func() { s.verdict([]umbel.Engine{a, b}[i%2], done(r), umbel.Recorded) })
			}
			wg.Wait()
			for range 2 {
				if st := <-waited; st != umbel.StatusCompleted {
					s.t.Errorf("who waited was told %s", st)
				}
			}
			events := s.history(a, id)
			if of(events, umbel.FanOutDecided) != 1 || of(events, umbel.WorkflowClosed) != 1 || events[len(events)-1].Type != umbel.WorkflowClosed {
				s.t.Fatalf("round %d: not decided once and closed once, at the end", round)
			}
		}
	})
}

// Promise 9: a report of a run that Redis has forgotten, or of another run, is dropped and changes nothing.
func TestPromise9RunFence(t *testing.T) {
	onMini(t, func(s *stack) {
		e := s.open()
		s.start(e, "old", rows(2))
		held := s.claim(e, 2)
		s.redis.Engine(s.t).FlushAll() // Redis lost everything; the server remembers the run
		fresh := s.open()
		s.start(fresh, "old", rows(2))
		before := s.dump()
		for _, e := range []umbel.Engine{e, fresh} {
			for _, it := range []umbel.ReportItem{done(held[0]), failed(held[1]), released(held[1])} {
				if v := s.report(e, it)[0]; v.Code != umbel.Dropped && v.Code != umbel.Stale {
					s.t.Errorf("%+v", v)
				}
			}
			r, err := e.Renew(s.t.Context(), umbel.RenewRequest{Namespace: ns, Worker: "hand", Tokens: []umbel.Token{held[0].Token}})
			if err != nil || r.States[0] != umbel.HoldLost {
				s.t.Errorf("%v %v", r, err)
			}
		}
		if after := s.dump(); after != before {
			s.t.Errorf("something changed:\n%s\n---\n%s", before, after)
		}
		s.counts(fresh, "old", umbel.Counts{Scheduled: 2, Pending: 2})
	})
}
