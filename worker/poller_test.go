package worker

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel"
)

const slogWarn = slog.LevelWarn

func TestPollErrorsAreRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, Config{})
		HandleFunc(b.Worker, "echo", echo)
		var down atomic.Bool
		down.Store(true)
		b.engine.onPoll = func(context.Context, umbel.PollRequest) error {
			if down.Load() {
				return umbel.ErrUnavailable
			}
			return nil
		}
		b.engine.add(1, row("echo"))
		b.start()
		time.Sleep(time.Hour)
		b.engine.mu.Lock()
		polls := len(b.engine.polls)
		b.engine.mu.Unlock()
		if polls < 400 || polls > 2000 {
			t.Errorf("%d polls in an hour", polls)
		}
		down.Store(false)
		time.Sleep(2 * maxBackOff)
		if ends, _, _ := b.engine.state(); ends != 1 {
			t.Error("it did not recover")
		}
		b.stopped()
		if w := b.logs.at(slogWarn); len(w) != 1 {
			t.Errorf("warnings: %v", w)
		}
	})
}

func TestInvalidPollEndsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, Config{Grace: time.Minute})
		ends := causes(b, 10*time.Second)
		b.engine.add(1, row("wait"))
		var n atomic.Int64
		b.engine.onPoll = func(context.Context, umbel.PollRequest) error {
			if n.Add(1) > 1 {
				return umbel.Invalid("node", "x", "is not allowed")
			}
			return nil
		}
		b.start()
		if err := <-b.ran; !errors.Is(err, umbel.ErrInvalid) || !strings.Contains(err.Error(), "is not allowed") {
			t.Errorf("Run: %v", err)
		}
		if err := <-ends; err != nil {
			t.Errorf("the row in hand was cancelled: %v", err)
		}
		b.cancel()
	})
}

// An engine that panics in every call stops no loop.
func TestCase53LoopsSurvivePanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, Config{})
		ends := causes(b, 5*time.Second)
		var n atomic.Int64
		boom := func() error {
			if n.Add(1)%2 == 1 {
				panic("boom")
			}
			return nil
		}
		b.engine.onPoll = func(context.Context, umbel.PollRequest) error { return boom() }
		b.engine.onRenew = func(context.Context, umbel.RenewRequest) error { return boom() }
		b.engine.onReport = func(context.Context, umbel.ReportRequest) error { return boom() }
		b.engine.add(20, row("wait"))
		b.start()
		time.Sleep(5 * time.Minute)
		if done, _, _ := b.engine.state(); done != 20 || len(ends) != 20 {
			t.Errorf("resolved %d, ran %d", done, len(ends))
		}
		b.engine.set(func() { b.engine.onPoll, b.engine.onRenew, b.engine.onReport = nil, nil, nil })
		b.stopped()
	})
}

// A busy worker polls when a quarter of its slots is free, also when that is more than a poll may ask for.
func TestPollSizes(t *testing.T) {
	for slots, want := range map[int]int{1: 1, 4: 1, 100: 25, 10_000: umbel.MaxPollRows} {
		b := setup(t, Config{Concurrency: slots})
		HandleFunc(b.Worker, "echo", echo)
		if err := b.begin(); err != nil {
			t.Fatal(err)
		}
		if p := b.plan(nil); p.rows != min(slots, umbel.MaxPollRows) {
			t.Errorf("%d slots, idle: %d rows", slots, p.rows)
		}
		b.busy = slots
		for b.busy > 0 && b.plan(nil).rows == 0 {
			b.busy--
		}
		if free := slots - b.busy; free != want {
			t.Errorf("%d slots: polls when %d are free, want %d", slots, free, want)
		}
	}
}

// Types with slots of their own never get more rows than those, and do not hold the others back.
func TestMaxConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, Config{Concurrency: 100})
		b.engine.latency = time.Millisecond
		var now, most, free atomic.Int64
		HandleFunc(b.Worker, "tight", func(_ context.Context, in umbel.Payload) (umbel.Payload, error) {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(time.Second)
			now.Add(-1)
			return in, nil
		}, MaxConcurrency(3))
		HandleFunc(b.Worker, "free", func(_ context.Context, in umbel.Payload) (umbel.Payload, error) {
			time.Sleep(time.Second)
			free.Add(1)
			return in, nil
		})
		b.engine.add(30, row("tight"))
		b.engine.add(1000, row("free"))
		b.start()
		time.Sleep(15 * time.Second)
		if most.Load() != 3 {
			t.Errorf("%d handlers of the tight type at once", most.Load())
		}
		if free.Load() != 1000 {
			t.Errorf("%d rows of the other type done", free.Load())
		}
		if ends, _, _ := b.engine.state(); ends != 1030 {
			t.Errorf("%d rows done", ends)
		}
		if w := b.logs.at(slogWarn); w != nil {
			t.Errorf("warnings: %v", w)
		}
		b.stopped()
		if s := b.Stats(); s.Released != 0 {
			t.Errorf("stats: %+v", s)
		}
	})
}

// greedy brings rows that nobody asked for.
type greedy struct{ *fake }

func (g greedy) Poll(ctx context.Context, r umbel.PollRequest) (umbel.PollReply, error) {
	r.MaxRows++
	r.Types = append([]string{"unknown"}, r.Types...)
	return g.fake.Poll(ctx, r)
}

func TestUnaskedRowsAreReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, Config{Concurrency: 1})
		b.Worker.engine = greedy{b.engine}
		HandleFunc(b.Worker, "echo", echo)
		b.engine.add(1, row("unknown"))
		b.engine.add(5, row("echo"))
		b.start()
		time.Sleep(time.Second)
		if ends, _, _ := b.engine.state(); ends != 5 {
			t.Errorf("resolved %d", ends)
		}
		b.engine.mu.Lock()
		if n := len(b.engine.polls); n > 50 {
			t.Errorf("it spins: %d polls in a second", n)
		}
		b.engine.mu.Unlock()
		b.stopped()
	})
}

func TestCase42SlotsAreBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, Config{Concurrency: 32})
		b.engine.latency = time.Millisecond
		HandleFunc(b.Worker, "work", func(_ context.Context, in umbel.Payload) (umbel.Payload, error) {
			time.Sleep(25 * time.Millisecond)
			return in, nil
		})
		b.engine.add(5000, row("work"))
		b.start()
		begun := time.Now()
		for {
			if ends, _, _ := b.engine.state(); ends == 5000 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if busy := float64(5000) * 0.025 / 32 / time.Since(begun).Seconds(); busy < 0.9 {
			t.Errorf("slots are %.0f %% busy", 100*busy)
		}
		b.stopped()
	})
}

// 100 slots and an empty handler: polls and reports are of many rows, in real time.
func TestQuickHandlersMakeLargeBatches(t *testing.T) {
	b := setup(t, Config{})
	b.engine.latency = time.Millisecond
	HandleFunc(b.Worker, "echo", echo)
	const rows = 10_000
	b.engine.add(rows, row("echo"))
	b.start()
	if err := b.engine.wait(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	b.stopped()
	s := b.Stats()
	t.Logf("rows a poll %.1f, rows a report %.1f", rows/float64(s.Polls), rows/float64(s.Reports))
	if s.Polls > rows/40 || s.Reports > rows/40 {
		t.Errorf("%d polls and %d reports for %d rows", s.Polls, s.Reports, rows)
	}
}
