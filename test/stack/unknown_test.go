package stack

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/worker"
)

// commands counts what a client of Redis sends.
type commands struct{ n atomic.Int64 }

func (c *commands) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *commands) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.n.Add(1)
		return next(ctx, cmd)
	}
}

func (c *commands) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.n.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}

// Case 48: rows of a type that no worker has registered. None is claimed, no attempt is spent, and nobody runs in
// circles because they are due: Redis is asked no more than when there is nothing to do. A worker that knows the type
// runs them at once.
func TestCase48TypeThatNoWorkerKnows(t *testing.T) {
	onMini(t, func(s *stack) {
		rdb := s.redis.NewClient(s.t)
		var sent commands
		rdb.AddHook(&sent)
		e := s.openOn(rdb)
		idle := func(d time.Duration) int64 {
			before := sent.n.Load()
			time.Sleep(d)
			return sent.n.Load() - before
		}
		handler := func(_ context.Context, p umbel.Payload) (umbel.Payload, error) { return p, nil }
		s.work(e, worker.Config{}, func(w *worker.Worker) { worker.HandleFunc(w, "known", handler) })
		time.Sleep(10 * time.Second)
		nothing := idle(2 * time.Minute)

		s.start(e, "w", rows(1_000, func(_ int, r *umbel.StagedRow) { r.Type = "unknown" }))
		time.Sleep(10 * time.Second)
		waiting := idle(2 * time.Minute)
		if waiting > nothing+nothing/5+10 {
			t.Errorf("%d commands in two minutes while rows wait that nobody knows, %d while there are none", waiting, nothing)
		}
		if c := s.describe(e, "w").Counts; c != (umbel.Counts{Scheduled: 1_000, Pending: 1_000}) {
			t.Errorf("the run stands at %+v, want all rows pending", c)
		}

		s.work(e, worker.Config{}, func(w *worker.Worker) { worker.HandleFunc(w, "unknown", handler) })
		began := time.Now()
		s.eventually("closed", func() bool { return s.describe(e, "w").Status == umbel.StatusCompleted })
		if d := time.Since(began); d > time.Second {
			t.Errorf("a worker that knows the type took %v", d)
		}
		for _, ev := range s.history(e, "w") {
			if ev.Attempt > 1 {
				t.Fatalf("an attempt was spent: %+v", ev)
			}
		}
	})
}
