package attempt_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/attempt"
)

// What is reported depends on what the handler returned and on why its context had ended; success counts always.
func TestOutcome(t *testing.T) {
	t.Parallel()
	spec := attempt.Spec{Number: 2, StartToClose: time.Second}
	boom := umbel.RetryAfter(umbel.Typed("boom", errors.New("boom")), time.Minute)
	for _, tc := range []struct {
		cause   error
		outcome umbel.Outcome
		typ     string
		retry   time.Duration
		gone    bool
	}{
		{nil, umbel.OutcomeFailed, "boom", time.Minute, false},
		{context.DeadlineExceeded, umbel.OutcomeFailed, "boom", time.Minute, false}, // a deadline of the handler's own
		{umbel.ErrTimedOut, umbel.OutcomeFailed, umbel.FailureTimedOut, 0, false},
		{umbel.ErrWorkerStopping, umbel.OutcomeReleased, "", 0, false},
		{umbel.ErrLeaseLost, umbel.OutcomeReleased, "", 0, true},
		{umbel.ErrCancelled, umbel.OutcomeReleased, "", 0, true},
	} {
		result := umbel.Payload{Data: []byte("x")}
		if got := spec.Outcome(tc.cause, result, nil); got.Outcome != umbel.OutcomeCompleted || string(got.Result.Data) != "x" {
			t.Errorf("success, cause %v: %+v", tc.cause, got)
		}
		got := spec.Outcome(tc.cause, umbel.Payload{}, boom)
		if got.Outcome != tc.outcome || got.RetryAfter != tc.retry || attempt.Gone(tc.cause) != tc.gone {
			t.Errorf("failure, cause %v: %+v", tc.cause, got)
		}
		if f := got.Failure; (f == nil) != (tc.typ == "") || f != nil && (f.Type != tc.typ || f.Attempt != 2) {
			t.Errorf("failure, cause %v: %+v", tc.cause, f)
		}
	}
}

func TestFromNeedsAHandlersContext(t *testing.T) {
	t.Parallel()
	if a, ok := attempt.From(t.Context()); ok {
		t.Errorf("a context of no handler is that of %v", a)
	}
}
