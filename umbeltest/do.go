package umbeltest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/attempt"
)

// Do runs one attempt of fn as a worker would, with no server: input and result pass through the activity's codec and
// the limits of payloads, the context is that of [Context] and ends after the activity's start-to-close, and fn runs in
// a goroutine of its own, where a panic, runtime.Goexit and with it t.FailNow are failures of the attempt. A handler
// that has not returned 100 ms after its start-to-close is left behind, and the attempt has timed out. Do makes one
// attempt, whatever the retry policy; the others are for [New].
//
// The error says what becomes of the attempt. errors.AsType finds the *[umbel.Failure] that history would keep;
// errors.Is, errors.As and [umbel.RetryDelay] also see what fn returned, and [umbel.ErrTimedOut] if that is why. An
// input that cannot be encoded or is too large is refused before fn is called, as a client refuses it.
//
// Do fails the test at once if fn is nil or if no worker would take the activity, so call it from the test's goroutine.
func Do[In, Out any](tb testing.TB, activity umbel.Activity[In, Out], fn func(context.Context, In) (Out, error), in In, a Attempt) (Out, error) {
	tb.Helper()
	if fn == nil {
		tb.Fatal("umbeltest: Do needs a handler: fn is nil")
	}
	policy := activity.Policy()
	if err := policy.Validate(); err != nil {
		tb.Fatalf("umbeltest: activity %q: %v", policy.Type, err)
	}
	a.Info.Type = cmp.Or(a.Info.Type, policy.Type)

	var out Out
	input, err := activity.Codec().Encode(in)
	if err == nil {
		err = input.Validate("input")
	}
	if err != nil {
		return out, fmt.Errorf("umbeltest: input: %w", err)
	}
	result, err := run(tb, attempt.Typed(activity.Codec(), fn), input, a, policy.StartToClose)
	if err != nil {
		return out, err
	}
	if err := activity.Codec().Decode(result, &out); err != nil {
		return out, fmt.Errorf("umbeltest: result: %w", err)
	}
	return out, nil
}

// run makes an attempt. startToClose is the activity's; a deadline of the attempt's own goes before it.
func run(tb testing.TB, h umbel.Handler, in umbel.Payload, a Attempt, startToClose time.Duration) (umbel.Payload, error) {
	tb.Helper()
	begun := time.Now() // the attempt's time runs from here
	if !a.Info.Deadline.IsZero() {
		startToClose = a.Info.Deadline.Sub(begun)
	} else if startToClose > 0 {
		a.Info.Deadline = begun.Add(startToClose)
	}
	ctx := newLone(tb, a)
	spec := attempt.Spec{Number: ctx.info.Attempt, StartToClose: startToClose}

	type end struct {
		out umbel.Payload
		err error
	}
	ended := make(chan end, 1)
	go attempt.Call(ctx, h, in, func(out umbel.Payload, err error) { ended <- end{out, err} })

	var overrun <-chan time.Time // never, without a deadline
	if !a.Info.Deadline.IsZero() {
		timer := time.NewTimer(startToClose + attempt.OverrunGrace)
		defer timer.Stop()
		overrun = timer.C
	}
	select {
	case e := <-ended:
		cause := context.Cause(ctx)
		switch item := spec.Outcome(cause, e.out, e.err); item.Outcome {
		case umbel.OutcomeCompleted:
			return item.Result, nil
		case umbel.OutcomeFailed:
			return umbel.Payload{}, &failed{Failure: item.Failure, why: errors.Join(cause, e.err)}
		default:
			return umbel.Payload{}, fmt.Errorf("umbeltest: the attempt has no outcome: %w: %w", cause, e.err)
		}
	case <-overrun:
		return umbel.Payload{}, &failed{Failure: spec.TimedOut(nil).Failure, why: umbel.ErrTimedOut}
	}
}

// failed is a failed attempt: as it is recorded, and as the handler said it.
type failed struct {
	*umbel.Failure

	why error // what the handler returned, and why its context ended
}

func (f *failed) Unwrap() []error { return []error{f.Failure, f.why} }
