package client

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/umbelhq/umbel"
)

// maxRewinds bounds how often one iteration starts over because Redis was taken back. More than a few of those
// while one loop runs is no failover but a fault.
const maxRewinds = 16

// resultReader is where one iteration over results stands: on its way to the run's close, or to what is there now.
type resultReader struct {
	h       *handle
	present bool                 // only what is there now
	req     umbel.ResultsRequest // of the next page
	read    readOrdinals
	most    int64 // present: how many there are now, -1 until that is known
	rewinds int
	over    bool
}

func newResultReader(h *handle, runID umbel.RunID, cfg resultConfig) *resultReader {
	r := &resultReader{
		h: h, present: cfg.present, read: readOrdinals{ordered: cfg.ordered}, most: -1,
		req: umbel.ResultsRequest{
			Namespace: h.c.namespace, WorkflowID: h.id, RunID: runID, Cursor: cfg.from,
			Ordered: cfg.ordered, Status: cfg.status, WithInputs: cfg.withInputs, Wait: umbel.MaxPollWait,
		},
	}
	if cfg.present {
		r.req.Wait = 0
	}
	return r
}

// next reads a page and returns what of it is new. With an error come the results before it.
func (r *resultReader) next(ctx context.Context) ([]umbel.Result[umbel.Payload], error) {
	asked := time.Now()
	page, err := call(ctx, r.h.c, "results", r.h.id, func(ctx context.Context) (umbel.ResultsReply, error) {
		return r.h.c.engine.Results(ctx, r.req)
	})
	if errors.Is(err, umbel.ErrCursorLost) && r.req.Cursor != "" && r.rewinds < maxRewinds {
		r.req.Cursor = ""
		r.rewinds++
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r.h.saw(page.RunID)
	for i, res := range page.Results {
		if res.Ordinal < 0 || res.Ordinal > umbel.MaxOrdinal {
			return r.unread(page.Results[:i]), r.h.broken("results", "the server returned ordinal "+strconv.FormatInt(res.Ordinal, 10))
		}
	}
	fresh, stays := r.unread(page.Results), page.Next == r.req.Cursor
	r.req.RunID, r.req.Cursor, r.over = page.RunID, page.Next, page.Done
	switch {
	case r.over:
	case r.present:
		err = r.count(ctx)
		r.over = stays || r.read.n >= r.most
	case stays:
		pace(ctx, asked)
	}
	return fresh, err
}

// unread returns those of a page that were not read before, and notes them.
func (r *resultReader) unread(page []umbel.Result[umbel.Payload]) []umbel.Result[umbel.Payload] {
	return slices.DeleteFunc(page, func(res umbel.Result[umbel.Payload]) bool { return !r.read.add(res.Ordinal) })
}

// count learns, once, how many results there are. A reader of a busy run that wants no more than those ends by it:
// a page that brings nothing may never come.
func (r *resultReader) count(ctx context.Context) error {
	if r.most >= 0 {
		return nil
	}
	d, err := r.h.describe(ctx, "results", r.req.RunID, 0)
	if err != nil {
		return err
	}
	switch r.req.Status {
	case umbel.StatusCompleted:
		r.most = d.Counts.Completed
	case umbel.StatusFailed:
		r.most = d.Counts.Failed
	case umbel.StatusCancelled:
		r.most = d.Counts.Cancelled
	default:
		r.most = d.Counts.Resolved()
	}
	return nil
}

// readOrdinals knows what one iteration has read.
type readOrdinals struct {
	ordered bool
	n       int64
	last    int64      // where they are ordered: the last one
	set     ordinalSet // else: all of them
}

// add reports whether an ordinal is new, and, where they are ordered, not passed.
func (s *readOrdinals) add(o int64) bool {
	if s.ordered && s.n > 0 && o <= s.last || !s.ordered && !s.set.add(o) {
		return false
	}
	s.n++
	s.last = o
	return true
}
