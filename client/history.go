package client

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/umbelhq/umbel"
)

// HistoryQuery says which events [Admin.History] yields. The zero HistoryQuery asks for all there are now.
type HistoryQuery struct {
	// Run must be a run of the workflow if it is given.
	Run umbel.RunID
	// Ordinal asks for the events of this row only. Nil: all.
	Ordinal *int64
	// From is the sequence number of the first event. 0 and 1: from the start.
	From int64
	// Follow waits for further events until the run is closed.
	Follow bool
}

// History yields the events of a workflow in their order. Without Follow it ends at the last one that was there
// when reading began. With it the last one is WorkflowClosed, unless Ordinal or From leaves that out.
//
// Where Redis lost its last moments while History followed, sequence numbers that were yielded are given to other
// events. History ends with [umbel.ErrCursorLost] if it notices; read again from the start.
func (a *Admin) History(ctx context.Context, id umbel.WorkflowID, q HistoryQuery) iter.Seq2[umbel.Event, error] {
	return func(yield func(umbel.Event, error) bool) {
		h := a.handle(id, q.Run)
		if err := h.checkHistory(q); err != nil {
			yield(umbel.Event{}, err)
			return
		}
		for ev, err := range h.history(ctx, q) {
			if err == nil && q.Ordinal != nil && !isOf(ev, *q.Ordinal) {
				continue
			}
			if !yield(ev, err) {
				return
			}
		}
	}
}

// isOf reports whether an event is one of a row.
func isOf(ev umbel.Event, ordinal int64) bool {
	switch ev.Type {
	case umbel.ActivityScheduled, umbel.ActivityStarted, umbel.ActivityAttemptFailed,
		umbel.ActivityCompleted, umbel.ActivityFailed, umbel.ActivityCancelled:
		return ev.Ordinal == ordinal
	case umbel.WorkflowStarted, umbel.CancelRequested, umbel.FanOutDecided, umbel.WorkflowClosed:
	}
	return false
}

func (h *handle) checkHistory(q HistoryQuery) error {
	if err := h.check("history"); err != nil {
		return err
	}
	var e *umbel.Error
	switch {
	case q.From < 0:
		e = umbel.Invalid("from", strconv.FormatInt(q.From, 10), "must be a sequence number, 1 or more, or 0 for the first")
	case q.Ordinal != nil:
		e = checkOrdinal(*q.Ordinal)
	}
	if e == nil {
		return nil
	}
	e.Op, e.WorkflowID, e.RunID = "history", h.id, h.runID
	return e
}

// history reads page after page: to the head as the first page has it, or to the run's close.
func (h *handle) history(ctx context.Context, q HistoryQuery) iter.Seq2[umbel.Event, error] {
	return func(yield func(umbel.Event, error) bool) {
		var (
			read   int64 // the last event that was yielded
			head   int64 // the last one to yield, once it is known
			closed bool  // nothing was open when the last page was asked for
		)
		req := umbel.HistoryRequest{
			Namespace: h.c.namespace, WorkflowID: h.id, RunID: h.runID, From: max(q.From, 1),
		}
		for {
			req.Wait = 0
			if q.Follow && !closed {
				req.Wait = umbel.MaxPollWait
			}
			asked := time.Now()
			page, err := call(ctx, h.c, "history", h.id, func(ctx context.Context) (umbel.HistoryReply, error) {
				return h.c.engine.History(ctx, req)
			})
			if err == nil && page.Head < read {
				err = h.historyLost(read, page.Head)
			}
			if err != nil {
				yield(umbel.Event{}, err)
				return
			}
			if !q.Follow && head == 0 {
				head = page.Head
			}
			for _, ev := range page.Events {
				if ev.Seq != req.From {
					yield(umbel.Event{}, h.broken("history", fmt.Sprintf("the server returned event %d in place of %d", ev.Seq, req.From)))
					return
				}
				if !q.Follow && ev.Seq > head || !yield(ev, nil) {
					return
				}
				read, req.From = ev.Seq, ev.Seq+1
				if ev.Type == umbel.WorkflowClosed && ev.Seq >= page.Head {
					return
				}
			}
			switch empty := len(page.Events) == 0; {
			case !q.Follow && (empty || read >= head), closed && empty:
				return
			case q.Follow && empty: // the run may have been closed before From
				d, err := h.describe(ctx, "history", h.runID, 0)
				if err != nil {
					yield(umbel.Event{}, err)
					return
				}
				if closed = d.Status != umbel.StatusRunning; !closed {
					pace(ctx, asked)
				}
			}
		}
	}
}

func (h *handle) historyLost(read, head int64) error {
	return &umbel.Error{
		Code: umbel.CodeCursorLost, Op: "history", WorkflowID: h.id, RunID: h.runID, NotApplied: true,
		Reason: fmt.Sprintf("Redis was taken back from event %d to %d; read again from the start", read, head),
	}
}
