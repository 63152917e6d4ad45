package client

import (
	"context"
	"iter"

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

// Results yields the outcome of each ordinal once, as they finish (or by ordinal, see [Ordered]), waiting for those
// still open, until the run is closed. A row that failed or was cancelled is a result whose Err says so; so is a value
// that cannot be decoded, as a [*umbel.Failure] of type [umbel.FailureInvalidResult] with Status completed.
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

// results reads page after page, each ordinal once.
func (h *handle) results(
	ctx context.Context, runID umbel.RunID, cfg resultConfig,
) iter.Seq2[umbel.Result[umbel.Payload], error] {
	return func(yield func(umbel.Result[umbel.Payload], error) bool) {
		if err := h.check("results"); err != nil {
			yield(umbel.Result[umbel.Payload]{}, err)
			return
		}
		r := newResultReader(h, runID, cfg)
		for !r.over {
			page, err := r.next(ctx)
			for _, res := range page {
				if !yield(res, nil) {
					return
				}
			}
			if err != nil {
				yield(umbel.Result[umbel.Payload]{}, err)
				return
			}
		}
	}
}
