package client

import (
	"context"
	"fmt"
	"strconv"

	"github.com/umbelhq/umbel"
)

// Run is a fan-out that was started, or attached to. It holds no connection; drop it when it is not needed
// any more, the work goes on. Safe for concurrent use.
//
// A Run that a start returned means that one run of the workflow. One from [Attach] means whichever run the
// workflow has: each call resolves it anew and stays with it to its end.
type Run[Out any] struct {
	h      *handle
	decode func(umbel.Result[umbel.Payload]) (Out, error)
}

func newRun[Out any](
	c *Client, id umbel.WorkflowID, s started, decode func(umbel.Result[umbel.Payload]) (Out, error),
) *Run[Out] {
	return &Run[Out]{h: &handle{c: c, id: id, runID: s.runID, attached: s.attached}, decode: decode}
}

// Attach returns the run of a workflow that was started anywhere, with the activity that it was started with.
// It makes no call: an unknown workflow is [umbel.ErrNotFound] from the first one, an invalid ID
// [umbel.ErrInvalid].
func Attach[In, Out any](c *Client, a umbel.Activity[In, Out], id umbel.WorkflowID) *Run[Out] {
	return newRun(c, id, started{attached: true}, outputOf(a))
}

// AttachRaw is [Attach] for a workflow whose activities are not at hand, or are several: results are payloads.
func AttachRaw(c *Client, id umbel.WorkflowID) *Run[umbel.Payload] {
	return newRun(c, id, started{attached: true}, rawOutput)
}

// outputOf decodes results of a, and refuses those of another activity: their bytes might decode by chance.
func outputOf[In, Out any](a umbel.Activity[In, Out]) func(umbel.Result[umbel.Payload]) (Out, error) {
	return func(r umbel.Result[umbel.Payload]) (Out, error) {
		if r.Type != "" && r.Type != a.Name() {
			var none Out
			return none, fmt.Errorf("umbel: ordinal %d is a result of %s, not of %s: attach with its activity, or raw",
				r.Ordinal, strconv.Quote(r.Type), strconv.Quote(a.Name()))
		}
		return a.Output(r)
	}
}

func rawOutput(r umbel.Result[umbel.Payload]) (umbel.Payload, error) { return r.Value, nil }

// WorkflowID returns the workflow's ID, drawn at random if the start named none.
func (r *Run[Out]) WorkflowID() umbel.WorkflowID { return r.h.id }

// ID returns the run's ID. For a Run from [Attach] it is that of the run which the last call found, and empty
// before the first.
func (r *Run[Out]) ID() umbel.RunID { return r.h.current() }

// Attached reports whether the run existed before: always for [Attach]; for a start, that its workflow ID had
// a run already.
func (r *Run[Out]) Attached() bool { return r.h.attached }

// Progress returns how the rows stand now. Errors: [umbel.ErrNotFound], [umbel.ErrUnavailable].
func (r *Run[Out]) Progress(ctx context.Context) (umbel.Counts, error) {
	d, err := r.h.describe(ctx, "progress", r.h.runID, 0)
	return d.Counts, err
}

// Wait returns when the run is closed: nil if every ordinal completed, else a [*umbel.FanOutError] with all
// counts and a sample of the failures. Other errors are [umbel.ErrNotFound] and [umbel.ErrUnavailable]; when
// ctx ends it is the latter, wrapping ctx's error, and the run goes on.
func (r *Run[Out]) Wait(ctx context.Context) error {
	d, err := r.h.closed(ctx, r.h.runID)
	if err != nil {
		return err
	}
	if d.Counts.Completed == d.Counts.Scheduled {
		return nil
	}
	return &umbel.FanOutError{
		WorkflowID: r.h.id, RunID: d.RunID, Status: d.Status, Counts: d.Counts,
		Sample: r.h.sampleFailures(ctx, d),
	}
}

// Cancel cancels the run, or, given ordinals, only those rows of it. Once it has returned, none of them is
// claimed again; a running activity sees its context end, with cause [umbel.ErrCancelled]. Rows that are
// resolved stay as they are, and cancelling twice is no error.
//
// reason is for people, valid UTF-8 of at most [umbel.MaxErrorMessageBytes]. More than
// [umbel.MaxReportItems] ordinals are cancelled in several calls; if one of them fails, those before it hold.
//
// Errors: [umbel.ErrInvalid] for an ordinal outside 0 to 2²⁴ − 1, or an empty list in place of none: nothing
// was cancelled; [umbel.ErrNotFound]; [umbel.ErrUnavailable], also at ctx's end: cancel again to be sure.
func (r *Run[Out]) Cancel(ctx context.Context, reason string, ordinals ...int64) error {
	_, err := r.h.cancel(ctx, reason, ordinals)
	return err
}
