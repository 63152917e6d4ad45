package attempt

import (
	"errors"
	"fmt"
	"time"

	"github.com/umbelhq/umbel"
)

// OverrunGrace is how long after its start-to-close an attempt may still return, so that a handler that heeds its
// context says itself what it was doing. Then it is reported as timed out without it.
const OverrunGrace = 100 * time.Millisecond

// Spec is what its outcome needs to know of an attempt.
type Spec struct {
	Number       int           // from 1
	StartToClose time.Duration // 0: none
}

// Outcome is what is to be reported of an attempt whose handler returned out and err. cause is why its context has
// ended, nil if it has not. The token is the caller's to add.
//
// A released outcome has two reasons: with [umbel.ErrWorkerStopping] the row goes back, with
// [umbel.ErrLeaseLost] and [umbel.ErrCancelled] there may be nothing to say, since the row is not ours.
func (s Spec) Outcome(cause error, out umbel.Payload, err error) umbel.ReportItem {
	switch {
	case err == nil: // success counts, whatever became of the context
		return umbel.ReportItem{Outcome: umbel.OutcomeCompleted, Result: out}
	case errors.Is(cause, umbel.ErrWorkerStopping), Gone(cause):
		return umbel.ReportItem{Outcome: umbel.OutcomeReleased}
	case errors.Is(cause, umbel.ErrTimedOut):
		return s.TimedOut(err)
	default:
		return s.Failed(err)
	}
}

// Gone reports whether cause says that the row is not the worker's any more.
func Gone(cause error) bool {
	return errors.Is(cause, umbel.ErrLeaseLost) || errors.Is(cause, umbel.ErrCancelled)
}

// TimedOut is the outcome of an attempt that took too long. err is what its handler said of it, nil if it said
// nothing.
func (s Spec) TimedOut(err error) umbel.ReportItem {
	f := &umbel.Failure{
		Type:    umbel.FailureTimedOut,
		Message: fmt.Sprintf("start-to-close of %v exceeded", s.StartToClose),
		Attempt: s.Number,
	}
	if err != nil {
		f.Cause = s.Failed(err).Failure
	}
	return umbel.ReportItem{Outcome: umbel.OutcomeFailed, Failure: f.Clip()}
}

// Failed classifies a handler's error. An error whose own methods panic is a panic of the handler.
func (s Spec) Failed(err error) (item umbel.ReportItem) {
	item = umbel.ReportItem{Outcome: umbel.OutcomeFailed}
	defer func() {
		if v := recover(); v != nil {
			item.Failure = umbel.NewFailure(Panicked(v), s.Number)
		}
	}()
	item.Failure = umbel.NewFailure(err, s.Number).Clip()
	item.RetryAfter = umbel.RetryDelay(err)
	return item
}
