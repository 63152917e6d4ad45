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
	"github.com/umbelhq/umbel/internal/testredis"
	"github.com/umbelhq/umbel/worker"
)

// Promise 13: Redis is away for longer than a lease while handlers run: nothing lapses, nothing runs twice, and no
// caller sees what go-redis or Redis say of it.
func TestPromise13RedisAway(t *testing.T) {
	t.Parallel()
	onOwn(t, func(s *stack) {
		e := s.open(lease(umbel.MinLease))
		var ran atomic.Int64
		release := make(chan struct{})
		s.work(e, worker.Config{MaxSilence: time.Hour}, func(w *worker.Worker) {
			worker.Handle(w, double, func(ctx context.Context, in int) (int, error) {
				ran.Add(1)
				select {
				case <-release:
				case <-ctx.Done():
					return 0, context.Cause(ctx)
				}
				return 2 * in, nil
			})
		})
		run, err := client.FanOut(s.t.Context(), s.connect(e), double, slices.Values(numbers(20)), client.WorkflowID("w"))
		if err != nil {
			s.t.Fatal(err)
		}
		s.eventually("all run", func() bool { return ran.Load() == 20 })
		time.Sleep(300 * time.Millisecond)
		s.redis.Kill(s.t)
		time.Sleep(2500 * time.Millisecond)
		s.redis.Restart(s.t)
		time.Sleep(1500 * time.Millisecond)
		close(release)
		if _, err := run.Gather(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
		if ran.Load() != 20 {
			s.t.Errorf("20 rows ran %d times", ran.Load())
		}
		if n := failures(s.history(e, "w"), umbel.FailureLeaseExpired); n != 0 {
			s.t.Errorf("%d leases lapsed", n)
		}
	}, testredis.AppendOnly("always"))
}

// A call whose context ends while Redis is away returns then, and says so.
func TestCallsEndWithTheirContext(t *testing.T) {
	t.Parallel()
	onOwn(t, func(s *stack) {
		e := s.open()
		s.start(e, "w", rows(10))
		held := s.claim(e, 5)
		s.redis.Kill(s.t)
		ctx, cancel := context.WithTimeout(s.t.Context(), 500*time.Millisecond)
		defer cancel()
		began := time.Now()
		errs := make(chan error, 4)
		go func() {
			_, err := e.Report(ctx, umbel.ReportRequest{Namespace: ns, Worker: "hand", Items: []umbel.ReportItem{done(held[0])}})
			errs <- err
		}()
		go func() {
			_, err := e.Renew(ctx, umbel.RenewRequest{Namespace: ns, Worker: "hand", Tokens: []umbel.Token{held[1].Token}})
			errs <- err
		}()
		go func() {
			_, err := e.Describe(ctx, umbel.DescribeRequest{Namespace: ns, WorkflowID: "w"})
			errs <- err
		}()
		go func() {
			r := pollRequest(5)
			r.Wait = 30 * time.Second
			_, err := e.Poll(ctx, r)
			errs <- err
		}()
		for range 4 {
			if err := <-errs; !errors.Is(err, umbel.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
				s.t.Errorf("%v", err)
			}
		}
		if took := time.Since(began); took > 3*time.Second {
			s.t.Errorf("the calls took %v", took)
		}
		s.redis.Restart(s.t) // without persistence: all is gone, which is said at the start
	})
}
