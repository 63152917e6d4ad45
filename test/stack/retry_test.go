package stack

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/worker"
)

// exactly is a policy without chance.
func exactly(initial time.Duration, attempts int) umbel.RetryPolicy {
	return umbel.RetryPolicy{Initial: initial, Jitter: 1e-9, MaxAttempts: attempts}
}

// Promise 5, and the policy's waits: a row is not claimed before it is due, and soon after.
func TestPromise5NeverEarlyAndNotLate(t *testing.T) {
	onEach(t, func(s *stack) {
		const wait = 300 * time.Millisecond
		e := s.open()
		s.claim0(e)
		began := time.Now()
		s.start(e, "w", rows(1, func(_ int, r *umbel.StagedRow) { r.Delay = wait }), retry(exactly(wait, 3))...)
		r := pollRequest(1)
		r.Wait = 10 * time.Second
		for attempt := 1; attempt <= 3; attempt++ {
			held := s.pollFor(e, r)
			took := time.Since(began)
			if len(held) != 1 || held[0].Attempt != attempt {
				s.t.Fatalf("attempt %d: %d rows", attempt, len(held))
			}
			want := wait << max(0, attempt-2) // the delay, the first wait, its double
			// Redis's clock and ours are the same here; a millisecond is lost in rounding
			if took < want-2*time.Millisecond {
				s.t.Errorf("attempt %d came %v after its time, which is early", attempt, took-want)
			}
			if s.virtual() && took > want+20*time.Millisecond || took > want+5*time.Second {
				s.t.Errorf("attempt %d came %v late", attempt, took-want)
			}
			if attempt < 3 {
				began = time.Now()
				s.verdict(e, failed(held[0]), umbel.Retrying)
				continue
			}
			s.finish(e, held)
		}
		s.history(e, "w")
	})
}

// claim0 claims nothing: afterwards the server has looked at every shard.
func (s *stack) claim0(e umbel.Engine) {
	s.t.Helper()
	if got := s.poll(e, 1); len(got) != 0 {
		s.t.Fatalf("claimed %d rows of an empty installation", len(got))
	}
}

// Case 26: one of ten fails twice, then succeeds: the gather waits for it. Each failure is in history with its error.
func TestCase26GatherWaitsForRetries(t *testing.T) {
	onEach(t, func(s *stack) {
		e := s.open()
		var tries tally[int]
		s.work(e, worker.Config{}, func(w *worker.Worker) {
			worker.Handle(w, double, func(_ context.Context, in int) (int, error) {
				if n := tries.add(in); in == 7 && n <= 2 {
					return 0, umbel.Typed("flaky", errors.New("try "+strconv.Itoa(n)))
				}
				return 2 * in, nil
			})
		})
		run, err := client.FanOut(s.t.Context(), s.connect(e), double, slices.Values(numbers(10)),
			client.WorkflowID("w"), client.Retry(exactly(10*time.Millisecond, 5)))
		if err != nil {
			s.t.Fatal(err)
		}
		got, err := run.Gather(s.t.Context())
		if err != nil || len(got) != 10 || got[7] != 14 {
			s.t.Fatalf("%v %v", got, err)
		}
		if n := failures(s.history(e, "w"), "flaky"); n != 2 {
			s.t.Errorf("%d failed attempts in history", n)
		}
	})
}

// Case 49: a retried row keeps its namespace, queue and node.
func TestCase49RetryKeepsRoute(t *testing.T) {
	onEach(t, func(s *stack) {
		e := s.open()
		s.start(e, "w", rows(1, func(_ int, r *umbel.StagedRow) { r.TaskQueue, r.Node = "q:{x}", "n 1" }), retry(exactly(time.Millisecond, 5))...)
		r := pollRequest(1)
		r.TaskQueue, r.Node, r.Wait = "q:{x}", "n 1", 5*time.Second
		for attempt := 1; attempt <= 3; attempt++ {
			held := s.pollFor(e, r)
			if len(held) != 1 || held[0].Attempt != attempt || held[0].TaskQueue != "q:{x}" || held[0].Node != "n 1" || held[0].Namespace != ns {
				s.t.Fatalf("attempt %d: %+v", attempt, held)
			}
			if attempt == 3 {
				s.finish(e, held)
				continue
			}
			s.verdict(e, failed(held[0]), umbel.Retrying)
			for _, other := range []umbel.PollRequest{pollRequest(1), {Namespace: ns, TaskQueue: "q:{x}", Types: []string{task}, Worker: "w", MaxRows: 1}} {
				time.Sleep(5 * time.Millisecond)
				if got := s.pollFor(e, other); len(got) != 0 {
					s.t.Fatal("another scope was handed the row")
				}
			}
		}
	})
}

// Promise 6: a late success of an older attempt is recorded while the ordinal is open; a failure of it is stale.
func TestPromise6LateSuccessCounts(t *testing.T) {
	onMini(t, func(s *stack) {
		e := s.open()
		s.start(e, "w", rows(3))
		old := s.claim(e, 3)
		time.Sleep(2 * umbel.DefaultLease)
		s.verdict(e, failed(old[0]), umbel.Stale)
		s.verdict(e, released(old[0]), umbel.Stale)
		if v := s.verdict(e, done(old[0]), umbel.Recorded); v.Attempt != 1 {
			s.t.Errorf("recorded attempt %d", v.Attempt)
		}
		held := s.claim(e, 2)
		i := slices.IndexFunc(held, func(r umbel.ClaimedRow) bool { return r.Ordinal == old[1].Ordinal })
		s.verdict(e, done(old[1]), umbel.Recorded) // while attempt 2 runs
		if v := s.verdict(e, done(held[i]), umbel.Dropped); v.Attempt != 1 {
			s.t.Errorf("the loser is told attempt %d, want 1", v.Attempt)
		}
		s.finish(e, slices.Delete(held, i, i+1))
		if v := s.verdict(e, done(old[2]), umbel.Dropped); v.Attempt != 2 {
			s.t.Errorf("the loser is told attempt %d, want 2", v.Attempt)
		}
		if d := s.describe(e, "w"); d.Status != umbel.StatusCompleted || d.Counts.Completed != 3 {
			s.t.Errorf("%+v", d)
		}
		s.history(e, "w")
	})
}

// Case 11, through the server: reports of attempts 1 and 2 race, again and again.
func TestCase11AttemptsRace(t *testing.T) {
	onMini(t, func(s *stack) {
		a, b := s.open(), s.open()
		const n = 300
		s.start(a, "w", rows(n))
		first := s.claim(a, n)
		time.Sleep(2 * umbel.DefaultLease)
		second := s.claim(a, n)
		slices.SortFunc(first, func(x, y umbel.ClaimedRow) int { return int(x.Ordinal - y.Ordinal) })
		slices.SortFunc(second, func(x, y umbel.ClaimedRow) int { return int(x.Ordinal - y.Ordinal) })
		for i := range n {
			verdicts := make(chan umbel.Verdict, 2)
			go func() { verdicts <- s.report(a, done(first[i]))[0] }()
			go func() { verdicts <- s.report(b, done(second[i]))[0] }()
			x, y := <-verdicts, <-verdicts
			if x.Code == umbel.Dropped {
				x, y = y, x
			}
			if x.Code != umbel.Recorded || y.Code != umbel.Dropped || x.Attempt != y.Attempt {
				s.t.Fatalf("ordinal %d: %+v and %+v", i, x, y)
			}
		}
		if n := of(s.history(a, "w"), umbel.ActivityCompleted); n != 300 {
			s.t.Errorf("%d completions", n)
		}
	})
}

// Case 29: one ordinal is reported twice before the others: the run closes after the others (promise 10).
func TestCase29ReportedTwice(t *testing.T) {
	onEach(t, func(s *stack) {
		e := s.open()
		s.start(e, "w", rows(3))
		held := s.claim(e, 3)
		v := s.report(e, done(held[1]), done(held[1]), done(held[0]))
		if v[0].Code != umbel.Recorded || v[1].Code != umbel.Dropped || v[1].Attempt != 1 || v[2].Code != umbel.Recorded {
			s.t.Fatalf("%+v", v)
		}
		if d := s.describe(e, "w"); d.Status != umbel.StatusRunning || d.Counts.Completed != 2 {
			s.t.Fatalf("%+v", d)
		}
		s.verdict(e, done(held[2]), umbel.Recorded)
		if d := s.describe(e, "w"); d.Status != umbel.StatusCompleted {
			s.t.Fatalf("%+v", d)
		}
		events := s.history(e, "w")
		if of(events, umbel.FanOutDecided) != 1 || of(events, umbel.WorkflowClosed) != 1 {
			s.t.Error("not decided once and closed once")
		}
	})
}

// Case 55: panic(nil), panic(err) and Goexit are failed attempts with the stack; the worker lives on.
func TestCase55Panics(t *testing.T) {
	onEach(t, func(s *stack) {
		e := s.open()
		s.work(e, worker.Config{}, func(w *worker.Worker) { worker.Handle(w, double, explode) })
		run, err := client.FanOut(s.t.Context(), s.connect(e), double, slices.Values(numbers(4)),
			client.WorkflowID("w"), client.Retry(exactly(time.Millisecond, 2)))
		if err != nil {
			s.t.Fatal(err)
		}
		e2, ok := errors.AsType[*umbel.FanOutError](run.Wait(s.t.Context()))
		if !ok || e2.Counts.Failed != 3 || e2.Counts.Completed != 1 {
			s.t.Fatalf("%+v", e2)
		}
		for _, f := range e2.Sample {
			if f.Err.Type != umbel.FailurePanic || f.Err.Stack == "" || f.Attempt != 2 {
				s.t.Errorf("%+v: %+v", f.Row, f.Err)
			}
		}
		if n := failures(s.history(e, "w"), umbel.FailurePanic); n != 6 {
			s.t.Errorf("%d panics in history, want 6", n)
		}
	})
}
