package umbeltest_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/umbeltest"
	"github.com/umbelhq/umbel/worker"
)

var slow = umbel.Define[string, string]("slow", umbel.StartToClose(time.Minute))

func TestDo(t *testing.T) {
	t.Parallel()
	out, err := umbeltest.Do(t, double, func(ctx context.Context, n int) (int, error) {
		i := worker.Info(ctx)
		if i.Type != "double" || i.Attempt != 3 || i.Key != "k" || i.Namespace != "default" || i.TaskQueue != "default" ||
			i.IdempotencyKey != "w:umbeltest:7" || i.DispatchKey != "w:7" || i.Token == "" || !i.Deadline.IsZero() {
			t.Errorf("info: %+v", i)
		}
		worker.Logger(ctx).Info("hello")
		return 2 * n, nil
	}, 21, umbeltest.Attempt{Info: umbel.Info{WorkflowID: "w", Ordinal: 7, Key: "k", Attempt: 3}})
	if out != 42 || err != nil {
		t.Error(out, err)
	}
}

// What ends a handler is a failure as a worker reports it, and still what the handler returned.
func TestDoFailures(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fn        func(context.Context, int) (int, error)
		typ       string
		is        error
		retry     time.Duration
		permanent bool
		stack     bool
	}{
		"error":   {fn: func(context.Context, int) (int, error) { return 0, umbel.Typed("eof", io.EOF) }, typ: "eof", is: io.EOF},
		"later":   {fn: func(context.Context, int) (int, error) { return 0, umbel.RetryAfter(io.EOF, time.Second) }, typ: "*errors.errorString", is: io.EOF, retry: time.Second},
		"never":   {fn: func(context.Context, int) (int, error) { return 0, umbel.NonRetryable(io.EOF) }, typ: "*errors.errorString", is: io.EOF, permanent: true},
		"panic":   {fn: func(context.Context, int) (int, error) { panic("boom") }, typ: umbel.FailurePanic, stack: true},
		"failnow": {fn: func(context.Context, int) (int, error) { (&recorder{TB: t}).Fatal("in a handler"); return 0, nil }, typ: umbel.FailurePanic, stack: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := umbeltest.Do(t, double, tc.fn, 1, umbeltest.Attempt{Info: umbel.Info{Attempt: 2}})
			f, ok := errors.AsType[*umbel.Failure](err)
			if !ok || f.Type != tc.typ || f.Attempt != 2 || f.NonRetryable != tc.permanent || err.Error() != f.Message {
				t.Fatalf("%+v", err)
			}
			if tc.is != nil && !errors.Is(err, tc.is) || umbel.RetryDelay(err) != tc.retry {
				t.Errorf("what the handler returned is lost: %v", err)
			}
			if tc.stack && !strings.Contains(f.Stack, "do_test.go") {
				t.Errorf("no stack of the handler: %s", f.Stack)
			}
		})
	}
}

// Time runs out as in a worker: who heeds it says what it was doing, who does not is left behind 100 ms later, and a
// success counts when it is in time for that.
func TestDoTimesOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, tc := range map[string]struct {
			takes time.Duration
			heeds bool
			took  time.Duration
			ok    bool
		}{
			"heeds":   {takes: time.Hour, heeds: true, took: time.Minute},
			"ignores": {takes: 2 * time.Minute, took: time.Minute + 100*time.Millisecond},
			"late":    {takes: time.Minute + time.Millisecond, took: time.Minute + time.Millisecond, ok: true},
		} {
			begun := time.Now()
			_, err := umbeltest.Do(t, slow, func(ctx context.Context, in string) (string, error) {
				if d, ok := ctx.Deadline(); !ok || !d.Equal(worker.Info(ctx).Deadline) || time.Until(d) != time.Minute {
					t.Errorf("%s: deadline %v", name, d)
				}
				if tc.heeds {
					<-ctx.Done()
					return "", context.Cause(ctx)
				}
				time.Sleep(tc.takes)
				return in, nil
			}, "x", umbeltest.Attempt{})
			if took := time.Since(begun); took != tc.took {
				t.Errorf("%s: took %v, want %v", name, took, tc.took)
			}
			if tc.ok {
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			f, ok := errors.AsType[*umbel.Failure](err)
			if !ok || f.Type != umbel.FailureTimedOut || !errors.Is(err, umbel.ErrTimedOut) || (f.Cause != nil) != tc.heeds ||
				f.Message != "start-to-close of 1m0s exceeded" {
				t.Errorf("%s: %+v", name, err)
			}
		}
		time.Sleep(time.Hour) // the handler that was left behind returns
	})
}

// A payload that the codec refuses, or that is too large, is refused here too.
func TestDoPassesTheCodec(t *testing.T) {
	t.Parallel()
	type secret struct{ Shown, hidden string }
	activity := umbel.Define[secret, secret]("secret")
	out, err := umbeltest.Do(t, activity, func(_ context.Context, in secret) (secret, error) {
		if in.hidden != "" {
			t.Error("the input did not pass the codec")
		}
		return secret{Shown: in.Shown, hidden: "out"}, nil
	}, secret{Shown: "a", hidden: "in"}, umbeltest.Attempt{})
	if err != nil || out != (secret{Shown: "a"}) {
		t.Errorf("%+v, %v", out, err)
	}

	large := strings.Repeat("x", umbel.MaxPayloadBytes)
	same := func(_ context.Context, in string) (string, error) { return in, nil }
	if _, err := umbeltest.Do(t, slow, same, large, umbeltest.Attempt{}); !errors.Is(err, umbel.ErrLimit) {
		t.Errorf("too large an input: %v", err)
	}
	_, err = umbeltest.Do(t, slow, func(context.Context, string) (string, error) { return large, nil }, "", umbeltest.Attempt{})
	if f, ok := errors.AsType[*umbel.Failure](err); !ok || f.Type != umbel.FailureInvalidResult || !f.NonRetryable {
		t.Errorf("too large a result: %+v", err)
	}
}

func TestDoMisuse(t *testing.T) {
	t.Parallel()
	rec := &recorder{TB: t}
	if said := rec.run(func() { _, _ = umbeltest.Do(rec, double, nil, 1, umbeltest.Attempt{}) }); !strings.Contains(said, "fn is nil") {
		t.Errorf("it says %q", said)
	}
	rec = &recorder{TB: t}
	nameless := umbel.Define[int, int]("")
	if said := rec.run(func() { _, _ = umbeltest.Do(rec, nameless, twice, 1, umbeltest.Attempt{}) }); !strings.Contains(said, "activity type") {
		t.Errorf("it says %q", said)
	}
}

// A context ends at its deadline and with its test, each with the cause that a worker gives it.
func TestContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rec := &recorder{TB: t}
		made := make(chan context.Context, 1)
		rec.run(func() {
			plain := umbeltest.Context(rec, umbeltest.Attempt{})
			made <- plain
			timed := umbeltest.Context(rec, umbeltest.Attempt{Info: umbel.Info{Deadline: time.Now().Add(time.Minute)}})
			if i := worker.Info(plain); i.Attempt != 1 || i.WorkflowID != umbel.WorkflowID(t.Name()) {
				t.Errorf("info: %+v", i)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if plain.Err() != nil || !errors.Is(context.Cause(timed), umbel.ErrTimedOut) {
				t.Error(plain.Err(), context.Cause(timed))
			}
		})
		plain := <-made
		if !errors.Is(context.Cause(plain), umbel.ErrWorkerStopping) {
			t.Error(context.Cause(plain))
		}
		worker.Logger(plain).Error("nobody hears this: the test is over")
		if worker.Info(plain).RunID == "" {
			t.Error("the context forgot its attempt")
		}
	})
}
