package stack

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/umbeltest"
	"github.com/umbelhq/umbel/worker"
)

// What becomes of rows whose worker dies, or whose handler hangs.

// inEnv runs f in virtual time with a server of its own. The history of "w" must be in order at its end.
func inEnv(t *testing.T, f func(t *testing.T, env *umbeltest.Env)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		env := umbeltest.New(t)
		f(t, env)
		(&stack{t: t}).history(env.Engine(), "w")
	})
}

func startDoubles(t *testing.T, env *umbeltest.Env, n int, opts ...client.StartOption) *client.Run[int] {
	t.Helper()
	run, err := client.FanOut(t.Context(), env.Client(), double, slices.Values(numbers(n)), append(opts, client.WorkflowID("w"))...)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// Case 4: an activity ignores its context and blocks. Attempt 2 runs on the other worker; the stuck handler keeps its
// slot, is counted, and the log says it.
func TestCase04StuckHandlerRunsElsewhere(t *testing.T) {
	inEnv(t, func(t *testing.T, env *umbeltest.Env) {
		release := make(chan struct{})
		stuckOn := make(chan *worker.Worker, 1)
		log := &logbook{}
		var ranOn []*worker.Worker
		for range 2 {
			w := env.Worker(worker.Config{Concurrency: 1, Logger: log.logger()})
			worker.Handle(w, double, func(ctx context.Context, in int) (int, error) {
				if worker.Info(ctx).Attempt == 1 {
					stuckOn <- w
					<-release
					return 0, errors.New("far too late")
				}
				ranOn = append(ranOn, w)
				return 2 * in, nil
			})
			env.Go(w)
		}
		run := startDoubles(t, env, 1, client.StartToClose(2*time.Second), client.Retry(umbel.RetryPolicy{MaxAttempts: 2}))
		begun := time.Now()
		if got, err := run.Gather(t.Context()); err != nil || got[0] != 0 {
			t.Fatal(got, err)
		}
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("took %v with a start-to-close of 2s", took)
		}
		env.Advance(time.Minute)
		stuck := <-stuckOn
		if len(ranOn) != 1 || ranOn[0] == stuck {
			t.Error("attempt 2 did not run on the other worker")
		}
		if s := stuck.Stats(); s.Stuck != 1 || s.Busy != 1 || s.Held != 0 {
			t.Errorf("the worker with the stuck handler says %+v", s)
		}
		if s := ranOn[0].Stats(); s.Stuck != 0 || s.Busy != 0 {
			t.Errorf("the other worker says %+v", s)
		}
		if log.count("WARN", "ignores the end of its context", "workflow=w", "row=0", "attempt=1") != 1 {
			t.Errorf("the log does not say so once:\n%s", log.text())
		}
		close(release)
		env.Advance(time.Second)
		if s := stuck.Stats(); s.Stuck != 0 || s.Busy != 0 {
			t.Errorf("once it has returned, the worker says %+v", s)
		}
	})
}

// Case 5: a start-to-close of hours does not keep the row of a dead worker.
func TestCase05LongTimeoutDoesNotHideADeath(t *testing.T) {
	inEnv(t, func(t *testing.T, env *umbeltest.Env) {
		dying := env.Worker(worker.Config{})
		worker.Handle(dying, double, func(ctx context.Context, _ int) (int, error) {
			<-ctx.Done()
			return 0, context.Cause(ctx)
		})
		env.Go(dying)
		run := startDoubles(t, env, 1, client.StartToClose(4*time.Hour))
		env.Advance(10 * time.Minute)
		env.Kill(dying)
		killed := time.Now()

		var again time.Time
		heir := env.Worker(worker.Config{})
		worker.Handle(heir, double, func(_ context.Context, in int) (int, error) {
			again = time.Now()
			return 2 * in, nil
		})
		env.Go(heir)
		if _, err := run.Gather(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := again.Sub(killed); took > umbel.DefaultLease*3/2 {
			t.Errorf("ran again %v after the kill, the lease is %v", took, umbel.DefaultLease)
		}
	})
}

// Case 8: told to end, and killed 100 ms later, three times over. Each time rows are in hand; the fan-out is complete
// within four leases.
func TestCase08TermThenKill(t *testing.T) {
	inEnv(t, func(t *testing.T, env *umbeltest.Env) {
		begin := func() *worker.Worker {
			w := env.Worker(worker.Config{Concurrency: 4})
			worker.Handle(w, double, func(ctx context.Context, in int) (int, error) {
				select {
				case <-time.After(5 * time.Second):
					return 2 * in, nil
				case <-ctx.Done():
					return 0, context.Cause(ctx)
				}
			})
			env.Go(w)
			return w
		}
		begun := time.Now()
		run := startDoubles(t, env, 20)
		for range 3 {
			w := begin()
			env.Advance(time.Second)
			go func() { _ = w.Drain(t.Context()) }() // as when the context of Run ends: no more rows, handlers go on
			env.Advance(100 * time.Millisecond)
			if s := w.Stats(); s.Held != 4 || s.Busy != 4 {
				t.Fatalf("killed with %+v", s)
			}
			env.Kill(w)
		}
		begin()
		got, err := run.Gather(t.Context())
		if err != nil || len(got) != 20 || got[19] != 38 {
			t.Fatal(got, err)
		}
		if took := time.Since(begun); took > 4*umbel.DefaultLease {
			t.Errorf("complete after %v, the lease is %v", took, umbel.DefaultLease)
		}
	})
}

// Case 12: a worker dies between the claim's reply and its handlers' first line.
func TestCase12KilledBeforeTheFirstLine(t *testing.T) {
	inEnv(t, func(t *testing.T, env *umbeltest.Env) {
		var dying *worker.Worker
		claimed := 0
		dying = env.Worker(worker.Config{Concurrency: 1, Interceptors: []umbel.Interceptor{func(umbel.Handler) umbel.Handler {
			return func(context.Context, umbel.Payload) (umbel.Payload, error) {
				claimed++
				env.Kill(dying)
				return umbel.Payload{}, nil
			}
		}}})
		register(dying)
		env.Go(dying)
		run := startDoubles(t, env, 1)
		env.Advance(time.Second)
		if counts, err := run.Progress(t.Context()); err != nil || counts.Claimed != 1 || claimed != 1 {
			t.Fatalf("a second after the death: %+v, %v, claimed %d times", counts, err, claimed)
		}
		died := time.Now()
		heir := env.Worker(worker.Config{})
		register(heir)
		env.Go(heir)
		if got, err := run.Gather(t.Context()); err != nil || len(got) != 1 {
			t.Fatal(got, err)
		}
		if took := time.Since(died); took > umbel.DefaultLease*3/2 {
			t.Errorf("the row came back after %v, the lease is %v", took, umbel.DefaultLease)
		}
	})
}
