package stack

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/worker"
)

// Promise 13: a worker that dies is noticed within one lease and the tenth of it at which sweeps come.
func TestPromise13LapseIsNoticedInTime(t *testing.T) {
	for _, d := range []time.Duration{umbel.MinLease, 5 * time.Second, umbel.DefaultLease} {
		t.Run(d.String(), func(t *testing.T) {
			onMini(t, func(s *stack) {
				e := s.open(lease(d))
				time.Sleep(time.Second) // swept before: no gap
				s.start(e, "w", rows(1), retry(umbel.RetryPolicy{Initial: time.Millisecond})...)
				s.claim(e, 1)
				claimed := time.Now()
				time.Sleep(d - time.Millisecond)
				s.counts(e, "w", umbel.Counts{Scheduled: 1, Claimed: 1})
				s.eventually("lapsed", func() bool { return s.describe(e, "w").Counts.Pending == 1 })
				if took := time.Since(claimed); took > d+d/10+50*time.Millisecond {
					s.t.Errorf("noticed after %v, lease is %v", took, d)
				}
				again := s.claim(e, 1)[0]
				if again.Attempt != 2 || again.LastFailure == nil || again.LastFailure.Type != umbel.FailureLeaseExpired {
					s.t.Fatalf("claimed again as attempt %d after %+v", again.Attempt, again.LastFailure)
				}
				s.finish(e, []umbel.ClaimedRow{again})
				if n := failures(s.history(e, "w"), umbel.FailureLeaseExpired); n != 1 {
					s.t.Errorf("%d lapses in history, want 1", n)
				}
			})
		})
	}
}

// Promise 13: a poison pill that kills its worker each time ends as a failed row, not as a crash loop.
func TestPromise13PoisonPillEndsFailed(t *testing.T) {
	onMini(t, func(s *stack) {
		e := s.open()
		s.start(e, "w", rows(1), retry(umbel.RetryPolicy{MaxAttempts: 3})...)
		for attempt := 1; attempt <= 3; attempt++ {
			if r := s.claim(e, 1)[0]; r.Attempt != attempt {
				s.t.Fatalf("claimed attempt %d, want %d", r.Attempt, attempt)
			}
			time.Sleep(2 * umbel.DefaultLease)
		}
		if d := s.describe(e, "w"); d.Status != umbel.StatusFailed || d.Counts.Failed != 1 {
			s.t.Fatalf("%+v", d)
		}
		if n := failures(s.history(e, "w"), umbel.FailureLeaseExpired); n != 3 {
			s.t.Errorf("%d lapses in history, want 3", n)
		}
	})
}

// A large poison: the worker that takes it dies at once, before the claim can be marked as delivered. The first such
// lapse is free, each one after it costs an attempt (case 59).
func TestCase59UndeliveredClaimIsFreeOnce(t *testing.T) {
	onMini(t, func(s *stack) {
		e := s.open()
		s.start(e, "w", rows(1), retry(umbel.RetryPolicy{MaxAttempts: 1})...)
		dying := s.open()
		if held := s.claim(dying, 1); held[0].Attempt != 1 {
			s.t.Fatalf("attempt %d", held[0].Attempt)
		}
		_ = dying.Close() // with the mark unwritten
		time.Sleep(2 * umbel.DefaultLease)
		s.counts(e, "w", umbel.Counts{Scheduled: 1, Pending: 1})

		dying = s.open()
		if held := s.claim(dying, 1); held[0].Attempt != 1 {
			s.t.Fatalf("an undelivered claim cost an attempt: %d", held[0].Attempt)
		}
		_ = dying.Close()
		time.Sleep(2 * umbel.DefaultLease)
		s.counts(e, "w", umbel.Counts{Scheduled: 1, Failed: 1})
		s.history(e, "w")
	})
}

// Cases 7 and 51: an activity ten leases long runs once; so does one that a stopping worker is given time for.
func TestCase07LongActivityRunsOnce(t *testing.T) {
	onMini(t, func(s *stack) {
		e := s.open(lease(2 * time.Second))
		var ran atomic.Int64
		long := func(w *worker.Worker) {
			worker.Handle(w, double, func(ctx context.Context, in int) (int, error) {
				ran.Add(1)
				select {
				case <-time.After(20 * time.Second):
				case <-ctx.Done():
				}
				return 2 * in, context.Cause(ctx)
			})
		}
		first := s.work(e, worker.Config{Grace: time.Minute}, long)
		run, err := client.FanOut(s.t.Context(), s.connect(e), double, slices.Values(numbers(10)))
		if err != nil {
			s.t.Fatal(err)
		}
		time.Sleep(time.Second)
		s.work(e, worker.Config{}, long)
		_ = first.Drain(s.t.Context()) // case 51
		if _, err := run.Gather(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
		if ran.Load() != 10 {
			s.t.Errorf("10 rows ran %d times", ran.Load())
		}
	})
}

// Case 10: a worker that is stopped for longer than its lease. Its context ends with ErrLeaseLost; what it reports
// changes nothing that another worker has settled.
func TestCase10LeaseLost(t *testing.T) {
	onMini(t, func(s *stack) {
		e := s.open()
		stopped := &switched{Engine: e}
		var cause atomic.Value
		s.work(stopped, worker.Config{}, func(w *worker.Worker) {
			worker.Handle(w, double, func(ctx context.Context, _ int) (int, error) {
				<-ctx.Done()
				cause.Store(context.Cause(ctx))
				return 0, errors.New("too late")
			})
		})
		run, err := client.FanOut(s.t.Context(), s.connect(e), double, slices.Values(numbers(1)),
			client.WorkflowID("w"), client.Retry(umbel.RetryPolicy{MaxAttempts: 5}))
		if err != nil {
			s.t.Fatal(err)
		}
		time.Sleep(time.Second)
		stopped.off.Store(true)
		time.Sleep(2 * umbel.DefaultLease)
		s.work(e, worker.Config{}, register)
		if _, err := run.Gather(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
		stopped.off.Store(false)
		time.Sleep(umbel.DefaultLease)
		if err, _ := cause.Load().(error); !errors.Is(err, umbel.ErrLeaseLost) {
			s.t.Errorf("the handler's context ended with %v", err)
		}
		s.history(e, "w")
	})
}

// switched is an engine that a worker cannot reach while it is off.
type switched struct {
	umbel.Engine
	off atomic.Bool
}

var errCut = &umbel.Error{Code: umbel.CodeUnavailable, Reason: "cut off by the test"}

func (e *switched) Poll(ctx context.Context, r umbel.PollRequest) (umbel.PollReply, error) {
	if e.off.Load() {
		return umbel.PollReply{}, errCut
	}
	return e.Engine.Poll(ctx, r)
}

func (e *switched) Renew(ctx context.Context, r umbel.RenewRequest) (umbel.RenewReply, error) {
	if e.off.Load() {
		return umbel.RenewReply{}, errCut
	}
	return e.Engine.Renew(ctx, r)
}

func (e *switched) Report(ctx context.Context, r umbel.ReportRequest) (umbel.ReportReply, error) {
	if e.off.Load() {
		return umbel.ReportReply{}, errCut
	}
	return e.Engine.Report(ctx, r)
}

// Case 58: the only server is away for two leases while workers run. On its return nothing lapses and nothing runs
// twice.
func TestCase58ServerAwayForTwoLeases(t *testing.T) {
	onMini(t, func(s *stack) {
		var current atomic.Pointer[switched]
		first := s.open()
		current.Store(&switched{Engine: first})
		e := &redirected{&current}
		var ran atomic.Int64
		s.work(e, worker.Config{MaxSilence: time.Hour}, func(w *worker.Worker) {
			worker.Handle(w, double, func(ctx context.Context, in int) (int, error) {
				ran.Add(1)
				select {
				case <-time.After(3 * umbel.DefaultLease):
					return 2 * in, nil
				case <-ctx.Done():
					return 0, context.Cause(ctx)
				}
			})
		})
		run, err := client.FanOut(s.t.Context(), s.connect(first), double, slices.Values(numbers(20)), client.WorkflowID("w"))
		if err != nil {
			s.t.Fatal(err)
		}
		time.Sleep(time.Second)
		_ = first.Close()
		time.Sleep(2 * umbel.DefaultLease)
		second := s.open()
		current.Store(&switched{Engine: second})
		if _, err := client.Attach(s.connect(second), double, run.WorkflowID()).Gather(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
		if ran.Load() != 20 {
			s.t.Errorf("20 rows ran %d times", ran.Load())
		}
		if n := failures(s.history(second, "w"), umbel.FailureLeaseExpired); n != 0 {
			s.t.Errorf("%d leases lapsed", n)
		}
	})
}

// redirected is whichever engine is current: an address that a new server took over.
type redirected struct{ to *atomic.Pointer[switched] }

func (e *redirected) Poll(ctx context.Context, r umbel.PollRequest) (umbel.PollReply, error) {
	return e.to.Load().Poll(ctx, r)
}

func (e *redirected) Leave(ctx context.Context, r umbel.LeaveRequest) error {
	return e.to.Load().Leave(ctx, r)
}

func (e *redirected) Renew(ctx context.Context, r umbel.RenewRequest) (umbel.RenewReply, error) {
	return e.to.Load().Renew(ctx, r)
}

func (e *redirected) Report(ctx context.Context, r umbel.ReportRequest) (umbel.ReportReply, error) {
	return e.to.Load().Report(ctx, r)
}

func (e *redirected) Describe(ctx context.Context, r umbel.DescribeRequest) (umbel.DescribeReply, error) {
	return e.to.Load().Describe(ctx, r)
}

func (e *redirected) Results(ctx context.Context, r umbel.ResultsRequest) (umbel.ResultsReply, error) {
	return e.to.Load().Results(ctx, r)
}

// Case 70: two servers with different leases: the later one holds, the other adopts it and says so.
func TestCase70TwoLeases(t *testing.T) {
	onMini(t, func(s *stack) {
		a := s.open(lease(10 * time.Second))
		b := s.open(lease(20 * time.Second))
		time.Sleep(3 * time.Second)
		if a.Lease() != 20*time.Second || b.Lease() != 20*time.Second {
			s.t.Errorf("leases are %v and %v", a.Lease(), b.Lease())
		}
		if s.log.count("WARN", "lease") == 0 {
			s.t.Error("nobody warns")
		}
		c := s.open()
		s.start(c, "w", rows(2))
		for _, e := range []umbel.Engine{a, c} {
			if got := s.claim(e, 1)[0].Lease; got != 20*time.Second {
				s.t.Errorf("a claim's lease is %v", got)
			}
		}
	})
}
