package worker

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel"
)

func row(typ string) umbel.ClaimedRow { return umbel.ClaimedRow{Row: umbel.Row{Type: typ}} }

func TestRunsRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, Config{Concurrency: 8})
		b.engine.latency = time.Millisecond
		HandleFunc(b.Worker, "echo", echo)
		in := umbel.Payload{ContentType: "x/y", Data: []byte("\x00\xff{}")}
		b.engine.add(1000, umbel.ClaimedRow{Row: umbel.Row{Type: "echo", Input: in}})
		b.start()
		time.Sleep(10 * time.Second)
		if ends, due, claimed := b.engine.state(); ends != 1000 || due != 0 || claimed != 0 {
			t.Errorf("resolved %d, due %d, claimed %d", ends, due, claimed)
		}
		if got := b.engine.end(17); got.Outcome != umbel.OutcomeCompleted || string(got.Result.Data) != string(in.Data) || got.Result.ContentType != "x/y" {
			t.Errorf("end 17: %+v", got)
		}
		b.stopped()
		if s := b.Stats(); s.Completed != 1000 || s.Rows != 1000 || s.Slots != 8 {
			t.Errorf("stats: %+v", s)
		}
	})
}

func TestCase52Lifecycle(t *testing.T) {
	bg := context.Background()
	ready := func(t *testing.T) *bundle {
		b := setup(t, Config{})
		HandleFunc(b.Worker, "echo", echo)
		return b
	}
	t.Run("stop before run", func(t *testing.T) {
		b := ready(t)
		for range 2 {
			if err := b.Stop(bg); err != nil {
				t.Error(err)
			}
			if err := b.Drain(bg); err != nil {
				t.Error(err)
			}
		}
		if err := b.Run(bg); !errors.Is(err, ErrStopped) {
			t.Errorf("Run after Stop: %v", err)
		}
	})
	t.Run("run twice", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := ready(t)
			b.start()
			synctest.Wait()
			if err := b.Run(bg); !errors.Is(err, ErrRanBefore) {
				t.Errorf("second Run: %v", err)
			}
			for range 2 {
				if err := b.Stop(bg); err != nil {
					t.Error(err)
				}
			}
			if err := <-b.ran; err != nil {
				t.Errorf("Run: %v", err)
			}
			if err := b.Run(bg); !errors.Is(err, ErrRanBefore) {
				t.Errorf("third Run: %v", err)
			}
			b.cancel()
		})
	})
	t.Run("context already cancelled", func(t *testing.T) {
		b := ready(t)
		ctx, cancel := context.WithCancel(bg)
		cancel()
		if err := b.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
		if len(b.engine.polls) != 0 {
			t.Error("it polled")
		}
		if err := b.Stop(ctx); err != nil {
			t.Errorf("Stop: %v", err)
		}
	})
	t.Run("nothing registered", func(t *testing.T) {
		b := setup(t, Config{})
		if err := b.Run(bg); !errors.Is(err, umbel.ErrInvalid) || !strings.Contains(err.Error(), "worker.Handle") {
			t.Errorf("Run: %v", err)
		}
	})
	t.Run("wait cut short", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := ready(t)
			HandleFunc(b.Worker, "slow", func(ctx context.Context, in umbel.Payload) (umbel.Payload, error) {
				time.Sleep(time.Minute)
				return in, nil
			})
			b.engine.add(1, row("slow"))
			b.start()
			synctest.Wait()
			ctx, cancel := context.WithTimeout(bg, time.Second)
			defer cancel()
			if err := b.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Drain: %v", err)
			}
			if err := b.Drain(bg); err != nil {
				t.Errorf("Drain: %v", err)
			}
			if err := <-b.ran; err != nil {
				t.Errorf("Run: %v", err)
			}
			if ends, _, _ := b.engine.state(); ends != 1 {
				t.Error("the row was not finished")
			}
			b.cancel()
		})
	})
}

// A clean stop, rows in hand and all, is no cause for alarm.
func TestCase54CleanStopLogsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, Config{Grace: time.Second})
		HandleFunc(b.Worker, "hang", func(ctx context.Context, _ umbel.Payload) (umbel.Payload, error) {
			<-ctx.Done()
			return umbel.Payload{}, context.Cause(ctx)
		})
		b.engine.add(10, row("hang"))
		b.start()
		time.Sleep(time.Minute)
		begun := time.Now()
		b.stopped()
		if took := time.Since(begun); took < time.Second || took > 1100*time.Millisecond {
			t.Errorf("stopped after %v, want the grace of 1s", took)
		}
		if w := b.logs.at(slog.LevelWarn); w != nil {
			t.Errorf("logged at warn: %v", w)
		}
		if s := b.Stats(); s.Released != 10 {
			t.Errorf("stats: %+v", s)
		}
		for _, r := range b.engine.due {
			if r.Attempt != 1 {
				t.Errorf("a released row was charged: attempt %d", r.Attempt)
			}
		}
	})
}

// Renewals go on while the worker drains, however long that takes.
func TestCase51StopWithLongActivity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, Config{Grace: 5 * time.Minute})
		runs := 0
		HandleFunc(b.Worker, "long", func(ctx context.Context, in umbel.Payload) (umbel.Payload, error) {
			runs++
			select {
			case <-time.After(70 * time.Second): // two leases and more
				return in, nil
			case <-ctx.Done():
				return in, context.Cause(ctx)
			}
		})
		b.engine.add(1, row("long"))
		b.start()
		time.Sleep(5 * time.Second)
		b.stopped()
		if ends, due, _ := b.engine.state(); runs != 1 || ends != 1 || due != 0 || b.engine.lapsed != 0 {
			t.Errorf("ran %d times, resolved %d, due %d, lapsed %d", runs, ends, due, b.engine.lapsed)
		}
	})
}

func TestStopReleasesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, Config{Grace: time.Hour})
		var causes []error
		var mu sync.Mutex
		HandleFunc(b.Worker, "hang", func(ctx context.Context, _ umbel.Payload) (umbel.Payload, error) {
			<-ctx.Done()
			mu.Lock()
			defer mu.Unlock()
			causes = append(causes, context.Cause(ctx))
			if len(causes) == 1 {
				return umbel.Payload{}, nil // made it
			}
			panic("whatever a stopped handler does")
		})
		b.engine.add(3, row("hang"))
		b.start()
		synctest.Wait()
		begun := time.Now()
		if err := b.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		if d := time.Since(begun); d > 100*time.Millisecond {
			t.Errorf("Stop took %v", d)
		}
		b.stopped()
		for _, c := range causes {
			if !errors.Is(c, umbel.ErrWorkerStopping) {
				t.Errorf("cause: %v", c)
			}
		}
		if s := b.Stats(); s.Released != 2 || s.Completed != 1 {
			t.Errorf("stats: %+v", s)
		}
	})
}

// A handler that ignores everything is left behind, and its row is somebody else's.
func TestStopAbandonsHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, Config{Grace: time.Second})
		HandleFunc(b.Worker, "stubborn", func(_ context.Context, in umbel.Payload) (umbel.Payload, error) {
			time.Sleep(time.Hour)
			return in, nil
		})
		b.engine.add(1, row("stubborn"))
		b.start()
		synctest.Wait()
		begun := time.Now()
		err := b.stop()
		if err == nil || !strings.Contains(err.Error(), "1 handlers") {
			t.Errorf("Run: %v", err)
		}
		if took := time.Since(begun); took > 7*time.Second {
			t.Errorf("stopped after %v", took)
		}
		if ends, due, claimed := b.engine.state(); ends != 0 || due != 1 || claimed != 0 {
			t.Errorf("resolved %d, due %d, claimed %d", ends, due, claimed)
		}
		if s := b.Stats(); s.Stuck != 1 || s.Busy != 1 {
			t.Errorf("stats: %+v", s)
		}
		time.Sleep(2 * time.Hour)
		if s := b.Stats(); s.Stuck != 0 || s.Busy != 0 {
			t.Errorf("stats after its return: %+v", s)
		}
	})
}

// The server is away when the worker stops: it tries, then says what it leaves.
func TestStopWithoutServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, Config{})
		HandleFunc(b.Worker, "echo", echo)
		b.engine.onReport = func(context.Context, umbel.ReportRequest) error { return umbel.ErrUnavailable }
		b.engine.add(3, row("echo"))
		b.start()
		time.Sleep(20 * time.Second)
		begun := time.Now()
		err := b.stop()
		if err == nil || !strings.Contains(err.Error(), "3 outcomes") {
			t.Errorf("Run: %v", err)
		}
		if took := time.Since(begun); took > DefaultGrace+flushTimeout+time.Second {
			t.Errorf("stopped after %v", took)
		}
	})
}

// Drain waits for reports as it does for handlers: what is done is not done again for an outage.
func TestDrainOutlastsOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, Config{})
		HandleFunc(b.Worker, "echo", echo)
		var down atomic.Bool
		down.Store(true)
		b.engine.onReport = func(context.Context, umbel.ReportRequest) error {
			if down.Load() {
				return umbel.ErrUnavailable
			}
			return nil
		}
		b.engine.add(3, row("echo"))
		b.start()
		time.AfterFunc(10*time.Minute, func() { down.Store(false) })
		time.Sleep(time.Second)
		if err := b.Drain(context.Background()); err != nil {
			t.Error(err)
		}
		b.stopped()
		if ends, _, _ := b.engine.state(); ends != 3 || b.engine.lapsed != 0 {
			t.Errorf("resolved %d, lapsed %d", ends, b.engine.lapsed)
		}
	})
}

// Run, Stop and Drain from everywhere at once: no panic, no deadlock, nothing left.
func TestCase52Stress(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			b := setup(t, Config{Concurrency: 4, Grace: time.Second})
			b.engine.latency = time.Millisecond
			HandleFunc(b.Worker, "echo", func(ctx context.Context, in umbel.Payload) (umbel.Payload, error) {
				select {
				case <-time.After(3 * time.Millisecond):
				case <-ctx.Done():
				}
				return in, context.Cause(ctx)
			})
			b.engine.add(100, row("echo"))
			var wg sync.WaitGroup
			for i := range 10 {
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
					defer cancel()
					time.Sleep(time.Duration(i%5) * time.Millisecond)
					switch i % 3 {
					case 0:
						err := b.Run(ctx)
						if err != nil && !errors.Is(err, ErrRanBefore) && !errors.Is(err, ErrStopped) {
							t.Errorf("Run: %v", err)
						}
					case 1:
						_ = b.Drain(ctx)
					case 2:
						_ = b.Stop(ctx)
					}
					b.Stats()
				})
			}
			wg.Wait()
			if s := b.Stats(); s.Held != 0 || s.Busy != 0 {
				t.Errorf("left in hand: %+v", s)
			}
			if _, _, claimed := b.engine.state(); claimed != 0 {
				t.Errorf("%d rows are claimed by nobody", claimed)
			}
		})
	}
}
