package client

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"time"

	"github.com/umbelhq/umbel"
)

// ResultOption changes what [Run.Results] yields.
type ResultOption interface{ applyResult(*resultConfig) }

type resultOption func(*resultConfig)

func (o resultOption) applyResult(c *resultConfig) { o(c) }

type resultConfig struct {
	from       umbel.Cursor
	withInputs bool
	ordered    bool
	status     umbel.Status // only these; empty: all
	present    bool         // only what is there now
}

// Ordered yields results by ordinal instead of as they finish: each waits until all before it are there. A cursor
// of one order is [umbel.ErrInvalid] in the other.
func Ordered() ResultOption {
	return resultOption(func(c *resultConfig) { c.ordered = true })
}

// OnlyFailed yields only rows that failed for good. The server leaves out the others, so that they cost no
// transfer. Rows that were cancelled are not failed; a value that cannot be decoded is of a row that completed.
func OnlyFailed() ResultOption {
	return resultOption(func(c *resultConfig) { c.status = umbel.StatusFailed })
}

// From goes on after the result that carried cursor, in any process. An empty cursor is the start.
func From(cursor umbel.Cursor) ResultOption {
	return resultOption(func(c *resultConfig) { c.from = cursor })
}

// WithInputs sets Row.Input of every result; decode it with [umbel.Activity.Input].
func WithInputs() ResultOption {
	return resultOption(func(c *resultConfig) { c.withInputs = true })
}

// maxRewinds bounds how often one iteration starts over because Redis was taken back. More than a few of those
// while one loop runs is no failover but a fault.
const maxRewinds = 16

// Results yields the outcome of each ordinal once, as they finish (or by ordinal, see [Ordered]), waiting for those
// still open, until the run is closed. A row that failed or was cancelled is a result whose Err says so; so is a value that cannot be
// decoded, as a [*umbel.Failure] of type [umbel.FailureInvalidResult] with Status completed.
//
// The sequence's own error comes once and last, with the zero Result: [umbel.ErrNotFound],
// [umbel.ErrUnavailable] (wrapping ctx's error when ctx ends), [umbel.ErrInvalid] for a cursor that is none.
// Break out at any time; ranging again reads again, from the start or [From]. Memory is that of one page,
// and a bit an ordinal.
//
// Where Redis lost its last moments, in a failover or a power cut, rows run and are recorded again.
// The iteration notices, reads again from the start by itself, and yields none of the ordinals that it has
// yielded; what it yielded first stands. It cannot know what an earlier iteration yielded: after such a loss,
// one that began with [From] yields ordinals from before its cursor once more, so keep what is done by
// ordinal, not by cursor alone.
func (r *Run[Out]) Results(ctx context.Context, opts ...ResultOption) iter.Seq2[umbel.Result[Out], error] {
	var cfg resultConfig
	for _, o := range opts {
		o.applyResult(&cfg)
	}
	return func(yield func(umbel.Result[Out], error) bool) {
		for raw, err := range r.h.results(ctx, r.h.runID, cfg) {
			if err != nil {
				yield(umbel.Result[Out]{}, err)
				return
			}
			if !yield(r.decoded(raw), nil) {
				return
			}
		}
	}
}

// decoded is raw with its value decoded, or with why it cannot be.
func (r *Run[Out]) decoded(raw umbel.Result[umbel.Payload]) umbel.Result[Out] {
	res := umbel.Result[Out]{Row: raw.Row, Status: raw.Status, Err: raw.Err, Cursor: raw.Cursor}
	if raw.Status != umbel.StatusCompleted || raw.Err != nil {
		return res
	}
	v, err := r.decode(raw)
	if err != nil {
		err = umbel.NonRetryable(umbel.Typed(umbel.FailureInvalidResult, err))
		res.Err = umbel.NewFailure(err, raw.Attempt)
		return res
	}
	res.Value = v
	return res
}

// results reads page after page, each ordinal once: to the run's close, or to what is there now.
func (h *handle) results(
	ctx context.Context, runID umbel.RunID, cfg resultConfig,
) iter.Seq2[umbel.Result[umbel.Payload], error] {
	return func(yield func(umbel.Result[umbel.Payload], error) bool) {
		var (
			none    umbel.Result[umbel.Payload]
			yielded = yieldedOrdinals{ordered: cfg.ordered}
			rewinds int
			most    int64 = -1 // how many there are now, once that is known
		)
		if err := h.check("results"); err != nil {
			yield(none, err)
			return
		}
		req := umbel.ResultsRequest{
			Namespace: h.c.namespace, WorkflowID: h.id, RunID: runID,
			Cursor: cfg.from, Ordered: cfg.ordered, Status: cfg.status, WithInputs: cfg.withInputs,
		}
		if !cfg.present {
			req.Wait = umbel.MaxPollWait
		}
		for {
			asked := time.Now()
			page, err := call(ctx, h.c, "results", h.id, func(ctx context.Context) (umbel.ResultsReply, error) {
				return h.c.engine.Results(ctx, req)
			})
			if errors.Is(err, umbel.ErrCursorLost) && req.Cursor != "" && rewinds < maxRewinds {
				req.Cursor = ""
				rewinds++
				continue
			}
			if err != nil {
				yield(none, err)
				return
			}
			h.saw(page.RunID)
			for _, res := range page.Results {
				if res.Ordinal < 0 || res.Ordinal > umbel.MaxOrdinal {
					yield(none, h.broken("results", "the server returned ordinal "+strconv.FormatInt(res.Ordinal, 10)))
					return
				}
				if yielded.add(res.Ordinal) && !yield(res, nil) {
					return
				}
			}
			if page.Done {
				return
			}
			stays := page.Next == req.Cursor
			req.RunID, req.Cursor = page.RunID, page.Next
			switch {
			case cfg.present && most < 0:
				if most, err = h.present(ctx, page.RunID, cfg.status); err != nil {
					yield(none, err)
					return
				}
			case stays && !cfg.present:
				pace(ctx, asked)
			}
			if cfg.present && (stays || yielded.n >= most) {
				return
			}
		}
	}
}

// present is how many results of a status there are. A reader of a busy run that wants no more ends by it: a page
// that brings nothing may never come.
func (h *handle) present(ctx context.Context, runID umbel.RunID, status umbel.Status) (int64, error) {
	d, err := h.describe(ctx, "results", runID, 0)
	if err != nil {
		return 0, err
	}
	switch status {
	case umbel.StatusCompleted:
		return d.Counts.Completed, nil
	case umbel.StatusFailed:
		return d.Counts.Failed, nil
	case umbel.StatusCancelled:
		return d.Counts.Cancelled, nil
	default:
		return d.Counts.Resolved(), nil
	}
}

// yieldedOrdinals knows what one iteration has yielded.
type yieldedOrdinals struct {
	ordered bool
	n       int64
	last    int64      // ordered: the last one
	set     ordinalSet // else: all
}

// add reports whether an ordinal is to be yielded: it is new, and where they are ordered it is not passed.
func (y *yieldedOrdinals) add(o int64) bool {
	if y.ordered && y.n > 0 && o <= y.last || !y.ordered && !y.set.add(o) {
		return false
	}
	y.n++
	y.last = o
	return true
}
