package worker

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel"
)

func TestRegistrationProblems(t *testing.T) {
	b := setup(t, Config{Concurrency: 10})
	ok := func(context.Context, string) (string, error) { return "", nil }
	Handle(b.Worker, umbel.Define[string, string]("taken"), ok)
	for name, err := range map[string]error{
		"name":        TryHandle(b.Worker, umbel.Define[string, string](""), ok),
		"activity":    TryHandle(b.Worker, umbel.Define[string, string]("a", umbel.StartToClose(-1)), ok),
		"retry":       TryHandle(b.Worker, umbel.Define[string, string]("a", umbel.Retry(umbel.RetryPolicy{MaxAttempts: 65})), ok),
		"twice":       TryHandle(b.Worker, umbel.Define[string, string]("taken"), ok),
		"nil":         TryHandle[string, string](b.Worker, umbel.Define[string, string]("a"), nil),
		"nil func":    TryHandleFunc(b.Worker, "a", nil),
		"zero":        TryHandleFunc(b.Worker, "a", echo, MaxConcurrency(0)),
		"negative":    TryHandleFunc(b.Worker, "a", echo, MaxConcurrency(-1)),
		"huge":        TryHandleFunc(b.Worker, "a", echo, MaxConcurrency(umbel.MaxConcurrency+1)),
		"nil option":  TryHandleFunc(b.Worker, "a", echo, nil),
		"untyped dup": TryHandleFunc(b.Worker, "taken", echo),
	} {
		if !errors.Is(err, umbel.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	func() {
		defer func() {
			if v, _ := recover().(string); !strings.Contains(v, `"taken"`) || !strings.Contains(v, "one Handle for each type") {
				t.Errorf("panic: %v", v)
			}
		}()
		Handle(b.Worker, umbel.Define[string, string]("taken"), ok)
	}()
	if err := b.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := TryHandleFunc(b.Worker, "late", echo); err == nil || !strings.Contains(err.Error(), "before Run") {
		t.Errorf("late: %v", err)
	}
	none := setup(t, Config{Interceptors: []umbel.Interceptor{func(umbel.Handler) umbel.Handler { return nil }}})
	if err := TryHandleFunc(none.Worker, "a", echo); err == nil {
		t.Error("an interceptor that returns nil was accepted")
	}
}

// What cannot be decoded or encoded fails for good; what is fine comes out as it went in.
func TestTypedHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		trace := func(name string) umbel.Interceptor {
			return func(h umbel.Handler) umbel.Handler {
				return func(ctx context.Context, p umbel.Payload) (umbel.Payload, error) {
					order = append(order, name)
					return h(ctx, p)
				}
			}
		}
		b := setup(t, Config{Concurrency: 1, Interceptors: []umbel.Interceptor{trace("outer"), trace("inner")}})
		Handle(b.Worker, umbel.Define[int64, int64]("double"), func(_ context.Context, n int64) (int64, error) { return 2 * n, nil })
		Handle(b.Worker, umbel.Define[int, float64]("nan"), func(context.Context, int) (float64, error) { return math.NaN(), nil })
		Handle(b.Worker, umbel.Define[int, umbel.None]("none"), func(context.Context, int) (umbel.None, error) { return umbel.None{}, nil })
		HandleFunc(b.Worker, "huge", func(context.Context, umbel.Payload) (umbel.Payload, error) {
			return umbel.Payload{Data: make([]byte, umbel.MaxPayloadBytes+1)}, nil
		})
		HandleFunc(b.Worker, "mistyped", func(context.Context, umbel.Payload) (umbel.Payload, error) {
			return umbel.Payload{ContentType: "a\nb"}, nil
		})
		for _, r := range []umbel.Row{
			{Type: "double", Input: umbel.Payload{ContentType: umbel.ContentTypeJSON, Data: []byte("4611686018427387903")}},
			{Type: "double", Input: umbel.Payload{Data: []byte("{")}},
			{Type: "nan", Input: umbel.Payload{Data: []byte("1")}},
			{Type: "none", Input: umbel.Payload{Data: []byte("1")}},
			{Type: "huge"},
			{Type: "mistyped"},
		} {
			b.engine.add(1, umbel.ClaimedRow{Row: r})
		}
		b.start()
		time.Sleep(time.Second)
		b.stopped()
		if got := string(b.engine.end(0).Result.Data); got != "9223372036854775806" {
			t.Errorf("double: %s", got)
		}
		if got := b.engine.end(3); got.Outcome != umbel.OutcomeCompleted || got.Result.Data != nil || got.Result.ContentType != "" {
			t.Errorf("none: %+v", got)
		}
		for ordinal, typ := range map[int64]string{
			1: umbel.FailureInvalidInput, 2: umbel.FailureInvalidResult, 4: umbel.FailureInvalidResult, 5: umbel.FailureInvalidResult,
		} {
			f := b.engine.end(ordinal).Failure
			if f == nil || f.Type != typ || !f.NonRetryable || f.Attempt != 1 {
				t.Errorf("ordinal %d: %+v", ordinal, f)
			}
		}
		if got := strings.Join(order[:2], " "); got != "outer inner" {
			t.Errorf("interceptors ran as %s", got)
		}
	})
}
