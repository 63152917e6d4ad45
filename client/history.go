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
			if err == nil && q.Ordinal != nil && (!ev.Type.OfRow() || ev.Ordinal != *q.Ordinal) {
				continue
			}
			if !yield(ev, err) {
				return
			}
		}
	}
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

// history reads page after page.
func (h *handle) history(ctx context.Context, q HistoryQuery) iter.Seq2[umbel.Event, error] {
	return func(yield func(umbel.Event, error) bool) {
		r := historyReader{h: h, follow: q.Follow, req: umbel.HistoryRequest{
			Namespace: h.c.namespace, WorkflowID: h.id, RunID: h.runID, From: max(q.From, 1),
		}}
		for !r.over {
			page, err := r.next(ctx)
			for _, ev := range page {
				if !yield(ev, nil) {
					return
				}
			}
			if err != nil {
				yield(umbel.Event{}, err)
				return
			}
		}
	}
}

// historyReader is where one iteration stands: on its way to the head as the first page had it, or to the close.
type historyReader struct {
	h      *handle
	follow bool
	req    umbel.HistoryRequest // of the next page
	read   int64                // the last event that was read
	head   int64                // the last one to read, unless it follows
	closed bool                 // the run was closed before the last page was asked for
	over   bool
}

// next reads a page. With an error come the events before it.
func (r *historyReader) next(ctx context.Context) ([]umbel.Event, error) {
	r.req.Wait = 0
	if r.follow && !r.closed {
		r.req.Wait = umbel.MaxPollWait
	}
	asked := time.Now()
	page, err := call(ctx, r.h.c, "history", r.h.id, func(ctx context.Context) (umbel.HistoryReply, error) {
		return r.h.c.engine.History(ctx, r.req)
	})
	if err != nil {
		return nil, err
	}
	if page.Head < r.read {
		return nil, r.h.historyLost(r.read, page.Head)
	}
	if !r.follow && r.head == 0 {
		r.head = page.Head
	}
	for i, ev := range page.Events {
		switch {
		case ev.Seq != r.req.From:
			return page.Events[:i], r.h.broken("history", fmt.Sprintf("the server returned event %d in place of %d", ev.Seq, r.req.From))
		case !r.follow && ev.Seq > r.head:
			r.over = true
			return page.Events[:i], nil
		}
		r.read, r.req.From = ev.Seq, ev.Seq+1
		r.over = ev.Type == umbel.WorkflowClosed && ev.Seq >= page.Head
	}
	switch empty := len(page.Events) == 0; {
	case !r.follow:
		r.over = empty || r.read >= r.head
	case empty && r.closed:
		r.over = true
	case empty:
		err = r.lookForClose(ctx, asked)
	}
	return page.Events, err
}

// lookForClose learns whether the run is closed: a page that is empty after the wait does not say that.
func (r *historyReader) lookForClose(ctx context.Context, asked time.Time) error {
	d, err := r.h.describe(ctx, "history", r.h.runID, 0)
	if err != nil {
		return err
	}
	if r.closed = d.Status != umbel.StatusRunning; !r.closed {
		pace(ctx, asked)
	}
	return nil
}

func (h *handle) historyLost(read, head int64) error {
	return &umbel.Error{
		Code: umbel.CodeCursorLost, Op: "history", WorkflowID: h.id, RunID: h.runID, NotApplied: true,
		Reason: fmt.Sprintf("Redis was taken back from event %d to %d; read again from the start", read, head),
	}
}
