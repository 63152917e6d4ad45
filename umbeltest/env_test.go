package umbeltest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/umbeltest"
	"github.com/umbelhq/umbel/worker"
)

var double = umbel.Define[int, int]("double")

func twice(_ context.Context, n int) (int, error) { return 2 * n, nil }

// recorder is a test whose verdict the real one looks at. What it does not say otherwise is the real one's.
type recorder struct {
	testing.TB

	said     []string
	cleanups []func()
}

func (r *recorder) Errorf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...))
}
func (r *recorder) Error(args ...any) { r.said = append(r.said, fmt.Sprint(args...)) }
func (r *recorder) Cleanup(f func())  { r.cleanups = append(r.cleanups, f) }

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	runtime.Goexit()
}

// run runs f as a test that ends, and returns what it said to fail.
func (r *recorder) run(f func()) string {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for _, clean := range slices.Backward(r.cleanups) {
				clean()
			}
		}()
		f()
	}()
	<-done
	return strings.Join(r.said, "\n")
}

func fanOut(t *testing.T, env *umbeltest.Env, n int) {
	t.Helper()
	w := env.Worker(worker.Config{})
	worker.Handle(w, double, twice)
	env.Go(w)
	in := make([]int, n)
	for i := range in {
		in[i] = i
	}
	run, err := client.FanOut(t.Context(), env.Client(), double, slices.Values(in))
	if err != nil {
		t.Fatal(err)
	}
	got, err := run.Gather(t.Context())
	if err != nil || len(got) != n || got[n-1] != 2*(n-1) {
		t.Fatal(got, err)
	}
}

func TestVirtualTime(t *testing.T) {
	t.Parallel()
	for range 2 { // a second bubble shows that the first left nothing behind
		synctest.Test(t, func(t *testing.T) { fanOut(t, umbeltest.New(t), 100) })
	}
}

func TestRealTime(t *testing.T) {
	t.Parallel()
	fanOut(t, umbeltest.New(t), 100)
}

// A start delay of minutes, and a retry a minute later, are a matter of Advance; what is due has happened when it returns.
func TestAdvance(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		env := umbeltest.New(t)
		w := env.Worker(worker.Config{})
		worker.Handle(w, double, func(ctx context.Context, n int) (int, error) {
			if worker.Info(ctx).Attempt == 1 {
				return 0, umbel.RetryAfter(errors.New("not yet"), time.Minute)
			}
			return 2 * n, nil
		})
		env.Go(w)
		run, err := client.FanOut(t.Context(), env.Client(), double, slices.Values([]int{21}), client.StartAfter(3*time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			by     time.Duration
			failed int64
			done   int64
		}{
			{3*time.Minute - time.Second, 0, 0},
			{2 * time.Second, 1, 0},
			{time.Minute - 4*time.Second, 1, 0},
			{4 * time.Second, 1, 1},
		} {
			env.Advance(step.by)
			counts, err := run.Progress(t.Context())
			if err != nil || counts.Completed != step.done || w.Stats().Failed != step.failed {
				t.Fatalf("after %v more: %+v, %d failed attempts, %v", step.by, counts, w.Stats().Failed, err)
			}
		}
	})
}

// A killed worker takes what it has with it: no release, no report, no renewal; its rows come back with the lease.
func TestKill(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		env := umbeltest.New(t)
		dying := env.Worker(worker.Config{})
		var causes []error
		worker.Handle(dying, double, func(ctx context.Context, n int) (int, error) {
			<-ctx.Done()
			causes = append(causes, context.Cause(ctx))
			return 2 * n, nil // a success, which nobody must hear of
		}, worker.MaxConcurrency(1))
		env.Go(dying)
		run, err := client.FanOut(t.Context(), env.Client(), double, slices.Values([]int{1}))
		if err != nil {
			t.Fatal(err)
		}
		env.Advance(time.Minute) // two leases: it is alive
		env.Kill(dying)
		env.Kill(dying)
		env.Advance(umbel.DefaultLease / 2)
		if counts, err := run.Progress(t.Context()); err != nil || counts.Claimed != 1 {
			t.Fatalf("half a lease later: %+v, %v", counts, err)
		}
		if len(causes) != 1 || !errors.Is(causes[0], umbel.ErrWorkerStopping) {
			t.Errorf("causes: %v", causes)
		}
		env.Advance(umbel.DefaultLease)
		if counts, err := run.Progress(t.Context()); err != nil || counts.Pending != 1 {
			t.Fatalf("one and a half lease later: %+v, %v", counts, err)
		}
		heir := env.Worker(worker.Config{})
		worker.Handle(heir, double, func(ctx context.Context, n int) (int, error) {
			i := worker.Info(ctx)
			if i.Attempt != 2 || i.LastFailure.Type != umbel.FailureLeaseExpired {
				t.Errorf("claimed again as %+v", i)
			}
			return 2 * n, nil
		})
		env.Go(heir)
		if got, err := run.Gather(t.Context()); err != nil || got[0] != 2 {
			t.Error(got, err)
		}
	})
}

// A handler kills its own worker, in real time: the success that it then returns is not recorded.
func TestKillInRealTime(t *testing.T) {
	t.Parallel()
	env := umbeltest.New(t)
	w := env.Worker(worker.Config{})
	killed := make(chan struct{})
	worker.Handle(w, double, func(_ context.Context, n int) (int, error) {
		defer close(killed)
		env.Kill(w)
		return 2 * n, nil
	})
	env.Go(w)
	run, err := client.FanOut(t.Context(), env.Client(), double, slices.Values([]int{1}))
	if err != nil {
		t.Fatal(err)
	}
	<-killed
	if err := w.Drain(t.Context()); err != nil { // it ends by itself
		t.Fatal(err)
	}
	if counts, err := run.Progress(t.Context()); err != nil || counts.Claimed != 1 {
		t.Errorf("%+v, %v", counts, err)
	}
}

// A worker killed before it ran takes nothing.
func TestKillBeforeGo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		env := umbeltest.New(t)
		w := env.Worker(worker.Config{})
		worker.Handle(w, double, twice)
		env.Kill(w)
		env.Go(w)
		run, err := client.FanOut(t.Context(), env.Client(), double, slices.Values([]int{1}))
		if err != nil {
			t.Fatal(err)
		}
		env.Advance(time.Minute)
		if counts, err := run.Progress(t.Context()); err != nil || counts.Pending != 1 {
			t.Errorf("%+v, %v", counts, err)
		}
	})
}

// Advance, and New with the wrong T, say what to do.
func TestMisuse(t *testing.T) {
	t.Parallel()
	says := func(t *testing.T, said, want string) {
		t.Helper()
		if !strings.Contains(said, want) {
			t.Errorf("it says %q, want %q in it", said, want)
		}
	}
	outdoors := &recorder{TB: t}
	says(t, outdoors.run(func() { umbeltest.New(outdoors).Advance(time.Second) }), "wrap the test in synctest.Test")
	foreign := &recorder{TB: t}
	says(t, foreign.run(func() {
		w, err := worker.New(umbeltest.New(foreign).Engine(), worker.Config{})
		if err != nil {
			t.Error(err)
		}
		env := umbeltest.New(foreign)
		env.Kill(w)
		env.Go(w)
	}), "make it with Env.Worker")
	config := &recorder{TB: t}
	says(t, config.run(func() { umbeltest.New(config).Worker(worker.Config{Concurrency: -1}) }), "concurrency")
	synctest.Test(t, func(t *testing.T) {
		idle := &recorder{TB: t}
		says(t, idle.run(func() {
			env := umbeltest.New(idle)
			env.Go(env.Worker(worker.Config{}))
			env.Advance(0)
		}), "call worker.Handle before Run")
	})

	outer := &outside{recorder{TB: t}}
	synctest.Test(t, func(*testing.T) {
		outer.run(func() { umbeltest.New(outer) })
	})
	says(t, strings.Join(outer.said, ""), "pass the T that synctest.Test passes")
}

// outside is a T from outside the bubble: it has a deadline.
type outside struct{ recorder }

func (*outside) Deadline() (time.Time, bool) { return time.Time{}, false }

// A handler that ignores its context for longer than five seconds fails the test, and does not hang it.
func TestStubbornHandler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rec := &recorder{TB: t}
		let := make(chan struct{})
		said := rec.run(func() {
			env := umbeltest.New(rec)
			w := env.Worker(worker.Config{})
			worker.Handle(w, double, func(_ context.Context, n int) (int, error) {
				<-let
				return n, nil
			})
			env.Go(w)
			if _, err := client.FanOut(t.Context(), env.Client(), double, slices.Values([]int{1})); err != nil {
				t.Error(err)
			}
			env.Advance(time.Second)
		})
		close(let)
		if !strings.Contains(said, "1 handlers that did not return") {
			t.Errorf("it says %q", said)
		}
	})
}
