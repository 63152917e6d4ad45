package worker

import (
	"context"
	"log/slog"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/attempt"
)

// hold is a claimed row in this worker's hands, from the poll's reply until its outcome is acknowledged. It is
// also the context of the row's handler, which is how [Info] finds it.
type hold struct {
	context.Context //nolint:containedctx // it is the handler's context, with more to say
	cancel          context.CancelCauseFunc
	stopTimeout     context.CancelFunc // nil without a start-to-close
	overrun         *time.Timer        // nil without a start-to-close

	worker *Worker
	row    umbel.ClaimedRow
	typ    *activityType

	// Guarded by Worker.mu.
	index   int       // in Worker.held, -1 once let go
	renewed time.Time // when the lease began anew, as far as is certain
	over    bool      // the attempt has its outcome; what the handler returns later is ignored
	lost    bool      // the server said that the row is not ours: renew no more
	silent  bool      // the handler was cancelled for want of an answer; the row may still be ours
	flying  bool      // its outcome is in a report that has not been answered
	refused bool      // its result was refused, and it is reported as failed
	item    umbel.ReportItem
	size    int // of item on the wire, about
}

// Value adds the hold itself, an [attempt.Attempt], to what the context holds.
func (h *hold) Value(key any) any {
	if key == (attempt.Key{}) {
		return h
	}
	return h.Context.Value(key)
}

// Info says which attempt the handler runs.
func (h *hold) Info() umbel.Info {
	deadline, _ := h.Deadline()
	r := &h.row
	return umbel.Info{
		Namespace: r.Namespace, TaskQueue: r.TaskQueue, Node: r.Node,
		WorkflowID: r.WorkflowID, RunID: r.RunID, Ordinal: r.Ordinal,
		Key: r.Key, Type: r.Type, Attempt: r.Attempt,
		DispatchKey:    umbel.DispatchKey(r.WorkflowID, r.Ordinal),
		IdempotencyKey: umbel.IdempotencyKey(r.WorkflowID, r.RunID, r.Ordinal),
		Token:          r.Token,
		Deadline:       deadline,
		LastFailure:    r.LastFailure,
	}
}

// Logger names the row and the attempt.
func (h *hold) Logger() *slog.Logger {
	return h.worker.log.With("workflow", string(h.row.WorkflowID), "row", h.row.Ordinal, "attempt", h.row.Attempt)
}

// spec is what outcomes need to know of the attempt.
func (h *hold) spec() attempt.Spec {
	return attempt.Spec{Number: h.row.Attempt, StartToClose: h.row.StartToClose}
}

// lease is long enough to be renewed in thirds, whatever the engine says.
func (h *hold) lease() time.Duration {
	if h.row.Lease < 3*time.Millisecond {
		return umbel.DefaultLease
	}
	return h.row.Lease
}

// newHold makes the context of the row's handler. The attempt's time runs from here.
func (w *Worker) newHold(base context.Context, row umbel.ClaimedRow, typ *activityType) *hold {
	h := &hold{worker: w, row: row, typ: typ, index: -1}
	h.Context, h.cancel = context.WithCancelCause(base)
	if d := row.StartToClose; d > 0 {
		h.Context, h.stopTimeout = context.WithTimeoutCause(h.Context, d, umbel.ErrTimedOut)
		w.handlers.Add(1)
		h.overrun = time.AfterFunc(d+attempt.OverrunGrace, func() {
			defer w.handlers.Done()
			w.overrun(h)
		})
	}
	return h
}

// release frees what the context holds on to.
func (h *hold) release() {
	if h.overrun != nil && h.overrun.Stop() {
		h.worker.handlers.Done()
	}
	if h.stopTimeout != nil {
		h.stopTimeout()
	}
	h.cancel(nil)
}

// take adds h to the rows in hand. mu is held.
func (w *Worker) take(h *hold, now time.Time) {
	h.index = len(w.held)
	h.renewed = now
	w.held = append(w.held, h)
	w.comeEarlier(h.lease() / 3)
}

// letGo ends the hold. mu is held.
func (w *Worker) letGo(h *hold) {
	last := len(w.held) - 1
	w.held[h.index] = w.held[last]
	w.held[h.index].index = h.index
	w.held[last] = nil
	w.held = w.held[:last]
	h.index = -1
	w.queuedBytes -= h.size
	h.item, h.size = umbel.ReportItem{}, 0
	w.wake()
}

// conclude gives the attempt its outcome, and queues the report if there is one to make. mu is held.
func (w *Worker) conclude(h *hold, item umbel.ReportItem, report bool) {
	h.over = true
	if !report {
		w.letGo(h)
		return
	}
	w.setItem(h, item)
	w.queue = append(w.queue, h)
	poke(w.queued)
	w.wake()
}

// setItem replaces what is to be reported. mu is held.
func (w *Worker) setItem(h *hold, item umbel.ReportItem) {
	w.queuedBytes -= h.size
	h.item, h.size = item, itemSize(item)
	w.queuedBytes += h.size
}

// wake tells who waits for slots, or for the end, that something has changed. mu is held.
func (w *Worker) wake() {
	if w.pollerWaits && w.plan(nil).rows > 0 {
		w.pollerWaits = false
		poke(w.room)
	}
	if w.state == stateStopping {
		poke(w.settled)
	}
}
