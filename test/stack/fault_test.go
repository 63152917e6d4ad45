package stack

import (
	"context"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/internal/testredis"
	"github.com/umbelhq/umbel/worker"
)

// faults goes between a server and Redis. A command is given to lose, which says whether its reply gets lost after it
// was applied; panics is how many commands panic.
type faults struct {
	lose   func(redis.Cmder) bool
	lost   atomic.Int64
	panics atomic.Int64
}

func (f *faults) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (f *faults) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if f.panics.Add(-1) >= 0 {
			panic("injected by the test")
		}
		err := next(ctx, cmd)
		return f.after(cmd, err)
	}
}

func (f *faults) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if f.panics.Add(-1) >= 0 {
			panic("injected by the test")
		}
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			if e := f.after(cmd, cmd.Err()); e != nil {
				err = e
			}
		}
		return err
	}
}

func (f *faults) after(cmd redis.Cmder, err error) error {
	if err == nil && f.lose != nil && f.lose(cmd) {
		f.lost.Add(1)
		cmd.SetErr(io.EOF)
		return io.EOF
	}
	return err
}

// behind returns a Redis client with faults.
func (s *stack) behind(f *faults) redis.UniversalClient {
	c := s.redis.NewClient(s.t)
	c.AddHook(f)
	return c
}

func isScript(cmd redis.Cmder) bool { return strings.HasPrefix(strings.ToLower(cmd.Name()), "eval") }

// Case 16: the reply of every fourth script is lost after it was applied, and the script is sent again. Each row is
// counted once and recorded once; claims whose reply was lost come back with their lease.
func TestCase16RepliesAreLost(t *testing.T) {
	onEach(t, func(s *stack) {
		var n atomic.Int64
		f := &faults{lose: func(cmd redis.Cmder) bool { return isScript(cmd) && n.Add(1)%4 == 0 }}
		e := s.openOn(s.behind(f), lease(umbel.MinLease))
		var tries tally[int]
		s.work(e, worker.Config{Concurrency: 100}, func(w *worker.Worker) {
			worker.Handle(w, double, func(_ context.Context, in int) (int, error) {
				if tries.add(in) == 1 && in%10 == 0 {
					return 0, errFirst
				}
				return 2 * in, nil
			})
		})
		const rows = 2000
		run, err := client.FanOut(s.t.Context(), s.connect(e), double, slices.Values(numbers(rows)), client.WorkflowID("w"),
			client.Retry(exactly(time.Millisecond, 10)))
		if err != nil {
			s.t.Fatal(err)
		}
		got, err := run.Gather(s.t.Context())
		if err != nil || len(got) != rows {
			s.t.Fatalf("%d results, %v", len(got), err)
		}
		s.counts(e, "w", umbel.Counts{Scheduled: rows, Completed: rows})
		if f.lost.Load() < 10 {
			s.t.Errorf("only %d replies were lost", f.lost.Load())
		}
		s.history(e, "w")
	})
}

// Case 53: every background loop of a server survives a panic.
func TestCase53LoopsSurvivePanics(t *testing.T) {
	onMini(t, func(s *stack) {
		f := &faults{}
		e := s.openOn(s.behind(f))
		s.start(e, "w", rows(60), retry(exactly(time.Millisecond, 10))...)
		for range 5 {
			f.panics.Store(30)
			time.Sleep(2 * time.Second) // through sweeps and reads
			f.panics.Store(0)
			held := s.claim(e, 10)
			f.panics.Store(3)
			if _, err := e.Report(s.t.Context(), umbel.ReportRequest{Namespace: ns, Worker: "hand", Items: []umbel.ReportItem{done(held[0])}}); err != nil &&
				umbel.CodeOf(err) != umbel.CodeInternal {
				s.t.Errorf("%v", err)
			}
			f.panics.Store(0)
			for _, r := range held {
				if v := s.report(e, done(r))[0]; v.Code != umbel.Recorded && v.Code != umbel.Dropped {
					s.t.Fatalf("%+v", v)
				}
			}
		}
		held := s.claim(e, 10)
		time.Sleep(2 * umbel.DefaultLease) // the sweep lives
		held2 := s.claim(e, 10)
		if held2[0].Attempt != held[0].Attempt+1 {
			s.t.Errorf("attempt %d after a lapse", held2[0].Attempt)
		}
		s.finish(e, held2)
		if s.log.count("panicked") < 5 {
			s.t.Errorf("%d panics in the log", s.log.count("panicked"))
		}
	})
}

// Case 13: SCRIPT FLUSH between every two steps: nobody sees NOSCRIPT.
func TestCase13ScriptFlush(t *testing.T) {
	onOwn(t, func(s *stack) {
		e := s.open()
		flush := func() {
			if err := s.redis.Client.ScriptFlush(s.t.Context()).Err(); err != nil {
				s.t.Fatal(err)
			}
		}
		s.start(e, "a", rows(10))
		flush()
		s.stage(e, "w", 10)
		flush()
		held := s.claim(e, 20)
		flush()
		tokens := []umbel.Token{held[0].Token}
		if r, err := e.Renew(s.t.Context(), umbel.RenewRequest{Namespace: ns, Worker: "hand", Tokens: tokens}); err != nil || r.States[0] != umbel.Held {
			s.t.Fatalf("%v %v", r, err)
		}
		flush()
		s.finish(e, held[:10])
		flush()
		s.verdict(e, released(held[10]), umbel.Released)
		flush()
		s.cancel(e, "a")
		flush()
		s.cancel(e, "w")
		if s.log.count("NOSCRIPT") > 0 {
			s.t.Error("the log speaks of NOSCRIPT")
		}
	})
}

// Case 13: Redis is killed and restarted from its append-only file between claim and report.
func TestCase13Restart(t *testing.T) {
	t.Parallel()
	onOwn(t, func(s *stack) {
		e := s.open()
		s.start(e, "w", rows(100))
		held := s.claim(e, 50)
		s.redis.Restart(s.t)
		s.finish(e, held)
		s.redis.Restart(s.t)
		s.finish(e, s.claim(e, 50))
		if d := s.describe(e, "w"); d.Status != umbel.StatusCompleted {
			s.t.Errorf("%+v", d)
		}
		s.history(e, "w")
		if s.log.count("NOSCRIPT") > 0 {
			s.t.Error("the log speaks of NOSCRIPT")
		}
	}, testredis.AppendOnly("always"))
}
