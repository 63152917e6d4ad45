package worker

import (
	"context"
	"errors"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/attempt"
)

// execute runs one row in a goroutine of its own. Whatever the handler does, panics and runtime.Goexit included,
// the row gets its outcome and the slot is freed when the handler is through.
func (w *Worker) execute(h *hold) {
	in := h.row.Input
	h.row.Input = umbel.Payload{} // not needed again; outcomes may wait long for a server
	attempt.Call(h, h.typ.handler, in, func(out umbel.Payload, err error) { w.returned(h, out, err) })
}

// returned takes what the handler returned, and frees the slot.
func (w *Worker) returned(h *hold, out umbel.Payload, err error) {
	cause := context.Cause(h)
	item := h.spec().Outcome(cause, out, err)
	item.Token = h.row.Token
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
	// Nothing to say of a row that is not ours. One that could not be renewed goes back uncharged, if it still is
	// ours when the server answers again.
	report := item.Outcome != umbel.OutcomeReleased || !attempt.Gone(cause) || h.silent && !h.lost
	w.conclude(h, item, report)
}

// overrun reports an attempt whose handler ignores that its time is over. The handler keeps its slot.
func (w *Worker) overrun(h *hold) {
	if !errors.Is(context.Cause(h), umbel.ErrTimedOut) {
		return
	}
	item := h.spec().TimedOut(nil)
	item.Token = h.row.Token
	w.mu.Lock()
	over := h.over
	if !over {
		w.stuck++
		w.conclude(h, item, true)
	}
	w.mu.Unlock()
	if !over {
		h.Logger().Warn("a handler goes on though its time is over: it ignores the end of its context and keeps its slot",
			"type", h.row.Type, "start_to_close", h.row.StartToClose)
	}
}

// sayFailed logs a failed attempt: a panic, which is a fault of the handler, as a warning with its stack.
func (w *Worker) sayFailed(h *hold, f *umbel.Failure) {
	log := h.Logger().With("type", f.Type, "err", f.Message)
	if f.Type == umbel.FailurePanic {
		log.Warn("attempt panicked", "stack", f.Stack)
		return
	}
	log.Info("attempt failed")
}
