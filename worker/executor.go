package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/umbelhq/umbel"
)

// overrunGrace is how long after its start-to-close an attempt may still return, so that a handler that heeds
// its context says itself what it was doing. Then it is reported as timed out without it.
const overrunGrace = 100 * time.Millisecond

// execute runs one row in a goroutine of its own. Whatever the handler does, panics and runtime.Goexit included,
// the row gets its outcome and the slot is freed when the handler is through.
func (w *Worker) execute(h *hold) {
	in := h.row.Input
	h.row.Input = umbel.Payload{} // not needed again; outcomes may wait long for a server
	var (
		out      umbel.Payload
		err      error
		returned bool
	)
	defer func() {
		if !returned {
			err = panicError(recover())
		}
		w.returned(h, out, err)
	}()
	out, err = h.typ.handler(h, in)
	if err == nil {
		if invalid := out.Validate("result"); invalid != nil {
			err = invalidResult(invalid)
		}
	}
	returned = true
}

// panicError describes a panic. It is called while the stack still has the frames that panicked.
func panicError(v any) error {
	value := "runtime.Goexit was called"
	if v != nil { // panic(nil) is a *runtime.PanicNilError
		value = fmt.Sprint(v)
	}
	return &umbel.PanicError{Value: value, Stack: string(debug.Stack())}
}

// returned takes what the handler returned, and frees the slot.
func (w *Worker) returned(h *hold, out umbel.Payload, err error) {
	cause := context.Cause(h)
	item := umbel.ReportItem{Token: h.row.Token, Outcome: umbel.OutcomeCompleted, Result: out}
	report := func() bool { return true }
	switch {
	case err == nil: // success counts, whatever became of the context
	case errors.Is(cause, umbel.ErrWorkerStopping):
		item = umbel.ReportItem{Token: h.row.Token, Outcome: umbel.OutcomeReleased}
	case errors.Is(cause, umbel.ErrLeaseLost), errors.Is(cause, umbel.ErrCancelled):
		// Nothing to say of a row that is not ours. One that could not be renewed goes back uncharged, if it
		// still is ours when the server answers again.
		item = umbel.ReportItem{Token: h.row.Token, Outcome: umbel.OutcomeReleased}
		report = func() bool { return h.silent && !h.lost }
	case errors.Is(cause, umbel.ErrTimedOut):
		item = timedOut(h, err)
	default:
		item = failed(h, err)
	}
	h.release()
	if f := item.Failure; f != nil {
		w.sayFailed(h, f)
	}

	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy--
	h.typ.busy--
	if h.over {
		w.stuck--
		w.wake()
		return
	}
	w.conclude(h, item, report())
}

// overrun reports an attempt whose handler ignores that its time is over. The handler keeps its slot.
func (w *Worker) overrun(h *hold) {
	if !errors.Is(context.Cause(h), umbel.ErrTimedOut) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if h.over {
		return
	}
	w.stuck++
	w.conclude(h, timedOut(h, nil), true)
}

// sayFailed logs a failed attempt: a panic, which is a fault of the handler, as a warning with its stack.
func (w *Worker) sayFailed(h *hold, f *umbel.Failure) {
	log := w.log.With("workflow", string(h.row.WorkflowID), "row", h.row.Ordinal, "attempt", h.row.Attempt, "type", f.Type, "err", f.Message)
	if f.Type == umbel.FailurePanic {
		log.Warn("attempt panicked", "stack", f.Stack)
		return
	}
	log.Info("attempt failed")
}

func timedOut(h *hold, err error) umbel.ReportItem {
	f := &umbel.Failure{
		Type:    umbel.FailureTimedOut,
		Message: fmt.Sprintf("start-to-close of %v exceeded", h.row.StartToClose),
		Attempt: h.row.Attempt,
	}
	if err != nil {
		f.Cause = failed(h, err).Failure
	}
	return umbel.ReportItem{Token: h.row.Token, Outcome: umbel.OutcomeFailed, Failure: f.Clip()}
}

// failed classifies a handler's error. An error whose own methods panic is a panic of the handler.
func failed(h *hold, err error) (item umbel.ReportItem) {
	item = umbel.ReportItem{Token: h.row.Token, Outcome: umbel.OutcomeFailed}
	defer func() {
		if v := recover(); v != nil {
			item.Failure = umbel.NewFailure(panicError(v), h.row.Attempt)
		}
	}()
	item.Failure = umbel.NewFailure(err, h.row.Attempt).Clip()
	item.RetryAfter = umbel.RetryDelay(err)
	return item
}
