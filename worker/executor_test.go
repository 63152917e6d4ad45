package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel"
)

// nilError panics when asked what it is.
type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

// Whatever ends a handler is a failed attempt; the worker lives on and gets its slot back.
func TestCase55Panics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, Config{Concurrency: 1})
		ways := map[string]func() error{
			"nil":    func() error { panic(nil) }, //nolint:govet // the case
			"err":    func() error { panic(errors.New("boom")) },
			"goexit": func() error { runtime.Goexit(); return nil },
			"method": func() error { var e *nilError; return e },
		}
		for name, way := range ways {
			HandleFunc(b.Worker, name, func(context.Context, umbel.Payload) (umbel.Payload, error) {
				return umbel.Payload{}, way()
			})
		}
		names := []string{"nil", "err", "goexit", "method"}
		for _, n := range names {
			b.engine.add(1, umbel.ClaimedRow{Row: umbel.Row{Type: n, Attempt: 2}}) // the last one
		}
		HandleFunc(b.Worker, "echo", echo)
		b.engine.add(1, row("echo"))
		b.start()
		time.Sleep(time.Second)
		for i, n := range names {
			f := b.engine.end(int64(i)).Failure
			if f == nil || f.Type != umbel.FailurePanic || f.Attempt != 2 || f.NonRetryable {
				t.Errorf("%s: %+v", n, f)
				continue
			}
			if !strings.Contains(f.Stack, "executor_test.go") {
				t.Errorf("%s: no stack of the handler: %s", n, f.Stack)
			}
		}
		if b.engine.end(4).Outcome != umbel.OutcomeCompleted {
			t.Error("the worker did not live on")
		}
		b.stopped()
	})
}

// Attempt 1 blocks for ever: it is reported when its time is over, and its slot stays taken.
func TestCase04HandlerIgnoresItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, Config{Concurrency: 2})
		b.engine.latency = time.Millisecond
		attempts := make(chan int, 2)
		HandleFunc(b.Worker, "block", func(ctx context.Context, in umbel.Payload) (umbel.Payload, error) {
			i := Info(ctx)
			attempts <- i.Attempt
			if i.Attempt == 1 {
				time.Sleep(time.Minute)
			}
			return in, nil
		})
		b.engine.add(1, umbel.ClaimedRow{Row: umbel.Row{Type: "block"}, StartToClose: 2 * time.Second})
		b.start()
		time.Sleep(2500 * time.Millisecond)
		if len(attempts) != 2 {
			t.Fatalf("%d attempts within 2.5s", len(attempts))
		}
		b.engine.mu.Lock()
		f := b.engine.fails[0].Failure
		b.engine.mu.Unlock()
		if f.Type != umbel.FailureTimedOut || f.Attempt != 1 {
			t.Errorf("failure: %+v", f)
		}
		if s := b.Stats(); s.Stuck != 1 || s.Busy != 1 || s.Held != 0 {
			t.Errorf("stats: %+v", s)
		}
		time.Sleep(2 * time.Minute)
		if s := b.Stats(); s.Stuck != 0 || s.Busy != 0 || s.Completed != 1 || s.Failed != 1 {
			t.Errorf("stats after its return: %+v", s)
		}
		b.stopped()
	})
}

// A handler that heeds its context says what it was doing; one that succeeds at the last moment has succeeded.
func TestCase35AroundTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, Config{})
		for name, d := range map[string]time.Duration{"before": -time.Millisecond, "after": time.Millisecond} {
			HandleFunc(b.Worker, name, func(_ context.Context, in umbel.Payload) (umbel.Payload, error) {
				time.Sleep(time.Minute + d)
				return in, nil
			})
			b.engine.add(1, umbel.ClaimedRow{Row: umbel.Row{Type: name}, StartToClose: time.Minute})
		}
		HandleFunc(b.Worker, "heeds", func(ctx context.Context, _ umbel.Payload) (umbel.Payload, error) {
			if d, ok := ctx.Deadline(); !ok || !d.Equal(Info(ctx).Deadline) || time.Until(d) != time.Minute {
				t.Errorf("deadline %v", d)
			}
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), umbel.ErrTimedOut) {
				t.Errorf("cause: %v", context.Cause(ctx))
			}
			return umbel.Payload{}, fmt.Errorf("fetch: %w", ctx.Err())
		})
		b.engine.add(1, umbel.ClaimedRow{Row: umbel.Row{Type: "heeds", Attempt: 2}, StartToClose: time.Minute})
		b.start()
		time.Sleep(2 * time.Minute)
		for i := range int64(2) {
			if b.engine.end(i).Outcome != umbel.OutcomeCompleted {
				t.Errorf("ordinal %d: %+v", i, b.engine.end(i))
			}
		}
		f := b.engine.end(2).Failure
		if f == nil || f.Type != umbel.FailureTimedOut || f.Cause == nil || f.Cause.Message != "fetch: context deadline exceeded" {
			t.Errorf("failure: %+v", f)
		}
		b.stopped()
	})
}

func TestErrorsAreClassified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, Config{})
		HandleFunc(b.Worker, "later", func(context.Context, umbel.Payload) (umbel.Payload, error) {
			return umbel.Payload{}, umbel.RetryAfter(umbel.Typed("busy", errors.New("429")), 3*time.Second)
		})
		HandleFunc(b.Worker, "never", func(context.Context, umbel.Payload) (umbel.Payload, error) {
			return umbel.Payload{}, umbel.NonRetryable(errors.New("410"))
		})
		b.engine.add(1, umbel.ClaimedRow{Row: umbel.Row{Type: "later", Attempt: 2}})
		b.engine.add(1, row("never"))
		b.start()
		time.Sleep(time.Second)
		b.stopped()
		if it := b.engine.end(0); it.RetryAfter != 3*time.Second || it.Failure.Type != "busy" || it.Failure.Message != "429" {
			t.Errorf("later: %+v, %+v", it, it.Failure)
		}
		if it := b.engine.end(1); !it.Failure.NonRetryable || it.RetryAfter != 0 {
			t.Errorf("never: %+v, %+v", it, it.Failure)
		}
	})
}

func TestInfo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, Config{Node: "n1", Identity: "me"})
		var infos []umbel.Info
		HandleFunc(b.Worker, "a", func(ctx context.Context, _ umbel.Payload) (umbel.Payload, error) {
			ctx, cancel := context.WithTimeout(ctx, time.Minute) // a derived one will do
			defer cancel()
			infos = append(infos, Info(ctx))
			Logger(ctx).Info("hello")
			return umbel.Payload{}, errors.New("no")
		})
		b.engine.add(1, umbel.ClaimedRow{Row: umbel.Row{Type: "a", Key: "k"}, Node: "n1"})
		b.start()
		time.Sleep(time.Second)
		b.stopped()
		if len(infos) != 2 {
			t.Fatalf("%d attempts", len(infos))
		}
		i := infos[1]
		if i.Namespace != "default" || i.TaskQueue != "default" || i.Node != "n1" || i.WorkflowID != "wf" || i.RunID != "run" ||
			i.Key != "k" || i.Type != "a" || i.Attempt != 2 || i.DispatchKey != "wf:0" || i.IdempotencyKey != "wf:run:0" ||
			i.Token == "" || !i.Deadline.IsZero() || i.LastFailure == nil || i.LastFailure.Message != "no" {
			t.Errorf("info: %+v", i)
		}
		if infos[0].IdempotencyKey != i.IdempotencyKey || infos[0].LastFailure != nil {
			t.Errorf("info of attempt 1: %+v", infos[0])
		}
		if p := b.engine.polls[0]; p.Node != "n1" || p.Worker != "me" || p.Wait != umbel.MaxPollWait || p.MaxRows != 100 {
			t.Errorf("poll: %+v", p)
		}
	})
	defer func() {
		if v, _ := recover().(string); !strings.Contains(v, "the context that the worker passed") {
			t.Errorf("panic: %v", v)
		}
	}()
	if Logger(context.Background()) != slog.Default() {
		t.Error("Logger of a foreign context")
	}
	Info(context.Background())
}
