package client_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
)

// away makes every call unavailable until d has passed.
func away(d time.Duration, err error) func(string, int) (error, error) {
	back := time.Now().Add(d)
	return func(string, int) (error, error) {
		if time.Now().Before(back) {
			return err, nil
		}
		return nil, nil
	}
}

func TestUnavailableIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{handle: echo, fault: away(20*time.Second, unavailable)}
		if v, err := client.Do(t.Context(), newClient(t, f), double, 7); err != nil || v != 7 {
			t.Fatal(v, err)
		}
		if n := f.count("Commit"); n < 5 || n > 20 {
			t.Errorf("%d tries in 20 s", n)
		}
	})
}

// While one server of several is stopped, the next try reaches another. It is made at once, and nobody is told.
func TestOneUnavailableAnswerIsMendedAtOnce(t *testing.T) {
	for tries, told := range map[int]bool{1: false, 2: true} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{handle: echo, fault: func(_ string, n int) (error, error) {
				if n <= tries {
					return unavailable, nil
				}
				return nil, nil
			}}
			var logs bytes.Buffer
			c, err := client.New(f, client.Config{Logger: slog.New(slog.NewTextHandler(&logs, nil))})
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			run, err := client.FanOut(t.Context(), c, double, upTo(3), client.WorkflowID("w"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := run.Gather(t.Context()); err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(began) > 0; waited != told || (logs.Len() > 0) != told {
				t.Errorf("%d in a row: %v, told %q", tries, time.Since(began), logs.String())
			}
		})
	}
}

func TestUnavailableForLongerThanPatience(t *testing.T) {
	for _, applied := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{fault: away(time.Hour, &umbel.Error{Code: umbel.CodeUnavailable, NotApplied: !applied})}
			began := time.Now()
			_, err := client.Do(t.Context(), newClient(t, f), double, 7, client.WorkflowID("w"))
			e, ok := errors.AsType[*umbel.Error](err)
			if !ok || e.Code != umbel.CodeUnavailable || e.WorkflowID != "w" || umbel.SafeToRetry(err) == applied {
				t.Errorf("got %v", err)
			}
			if d := time.Since(began); d > client.Patience || d < client.Patience-8*time.Second {
				t.Errorf("gave up after %v", d)
			}
		})
	}
}

func TestUnavailableIsRetriedToTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{handle: echo, fault: away(5*time.Minute, unavailable)}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		if v, err := client.Do(ctx, newClient(t, f), double, 7); err != nil || v != 7 {
			t.Fatal(v, err)
		}
		f.fault = away(time.Hour, unavailable)
		ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		_, err := client.Do(ctx, newClient(t, f), double, 7)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, umbel.ErrUnavailable) || time.Since(began) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

func TestOtherErrorsAreNotRetried(t *testing.T) {
	for _, code := range []umbel.Code{umbel.CodeOverloaded, umbel.CodeInternal, umbel.CodeUnsupported, umbel.CodeNotFound} {
		f := &fake{fault: func(string, int) (error, error) { return &umbel.Error{Code: code}, nil }}
		_, err := client.Do(t.Context(), newClient(t, f), double, 7)
		if umbel.CodeOf(err) != code || f.count("Commit") != 1 {
			t.Errorf("%v after %d tries", err, f.count("Commit"))
		}
	}
}

// While the server is away a failed start does not hang on discarding.
func TestCase40DiscardIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{fault: func(op string, n int) (error, error) {
			if op == "Discard" {
				return unavailable, nil
			}
			return nil, nil
		}}
		ctx, cancel := context.WithCancel(t.Context())
		in := func(yield func(umbel.Payload) bool) {
			for p := range chunks(6, half) {
				if !yield(p) {
					return
				}
			}
			cancel()
			yield(umbel.Payload{})
		}
		began := time.Now()
		_, err := client.FanOut(ctx, newClient(t, f), raw, in)
		if !errors.Is(err, context.Canceled) || time.Since(began) > 5*time.Second || f.count("Discard") < 2 {
			t.Errorf("%v after %v, %d tries", err, time.Since(began), f.count("Discard"))
		}
	})
}

// A commit that the context's end cut off may have been applied, and says so.
func TestContextEndsDuringACommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		f := &fake{fault: func(op string, n int) (error, error) {
			if op == "Commit" {
				cancel()
				return nil, &umbel.Error{Code: umbel.CodeUnavailable, Err: context.Canceled}
			}
			return nil, nil
		}}
		_, err := client.FanOut(ctx, newClient(t, f), raw, chunks(6, half), client.WorkflowID("w"))
		if !errors.Is(err, context.Canceled) || umbel.SafeToRetry(err) || f.count("Discard") != 0 || f.run("w") == nil {
			t.Errorf("%v, %v", err, f.calls)
		}
		again, err := client.FanOut(t.Context(), newClient(t, f), raw, chunks(6, half), client.WorkflowID("w"))
		if err != nil || !again.Attached() {
			t.Errorf("again: %v", err)
		}
	})
}
