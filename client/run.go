package client

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/umbelhq/umbel"
)

// Run is a fan-out that was started, or attached to. It holds no connection; drop it when it is not needed
// any more, the work goes on. Safe for concurrent use.
//
// A Run that a start returned means that one run of the workflow. One from [Attach] means whichever run the
// workflow has: each call resolves it anew and stays with it to its end.
type Run[Out any] struct {
	*handle
	decode func(umbel.Result[umbel.Payload]) (Out, error)
}

// handle is what of a Run does not depend on its type.
type handle struct {
	c        *Client
	id       umbel.WorkflowID
	runID    umbel.RunID // empty: the workflow's current run
	attached bool
	seen     atomic.Pointer[umbel.RunID] // the run that the last call was about
}

func newRun[Out any](
	c *Client, id umbel.WorkflowID, s started, decode func(umbel.Result[umbel.Payload]) (Out, error),
) *Run[Out] {
	return &Run[Out]{handle: &handle{c: c, id: id, runID: s.runID, attached: s.attached}, decode: decode}
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
func (h *handle) WorkflowID() umbel.WorkflowID { return h.id }

// ID returns the run's ID. For a Run from [Attach] it is that of the run which the last call found, and empty
// before the first.
func (h *handle) ID() umbel.RunID {
	if h.runID != "" {
		return h.runID
	}
	if id := h.seen.Load(); id != nil {
		return *id
	}
	return ""
}

// Attached reports whether the run existed before: always for [Attach]; for a start, that its workflow ID had
// a run already.
func (h *handle) Attached() bool { return h.attached }

// Progress returns how the rows stand now. Errors: [umbel.ErrNotFound], [umbel.ErrUnavailable].
func (h *handle) Progress(ctx context.Context) (umbel.Counts, error) {
	d, err := h.describe(ctx, "progress", h.runID, 0)
	return d.Counts, err
}

// Wait returns when the run is closed: nil if every ordinal completed, else a [*umbel.FanOutError] with all
// counts and a sample of the failures. Other errors are [umbel.ErrNotFound] and [umbel.ErrUnavailable]; when
// ctx ends it is the latter, wrapping ctx's error, and the run goes on.
func (h *handle) Wait(ctx context.Context) error {
	d, err := h.closed(ctx, h.runID)
	if err != nil {
		return err
	}
	if d.Counts.Completed == d.Counts.Scheduled {
		return nil
	}
	return &umbel.FanOutError{
		WorkflowID: h.id, RunID: d.RunID, Status: d.Status, Counts: d.Counts,
		Sample: h.sampleFailures(ctx, d),
	}
}

// closed waits until the run is closed.
func (h *handle) closed(ctx context.Context, runID umbel.RunID) (umbel.DescribeReply, error) {
	for {
		asked := time.Now()
		d, err := h.describe(ctx, "wait", runID, umbel.MaxPollWait)
		if err != nil || d.Status != umbel.StatusRunning {
			return d, err
		}
		runID = d.RunID
		pace(ctx, asked)
	}
}

func (h *handle) describe(
	ctx context.Context, op string, runID umbel.RunID, wait time.Duration,
) (umbel.DescribeReply, error) {
	if err := h.check(op); err != nil {
		return umbel.DescribeReply{}, err
	}
	req := umbel.DescribeRequest{Namespace: h.c.namespace, WorkflowID: h.id, RunID: runID, Wait: wait}
	d, err := call(ctx, h.c, op, h.id, func(ctx context.Context) (umbel.DescribeReply, error) {
		return h.c.engine.Describe(ctx, req)
	})
	if err == nil {
		h.saw(d.RunID)
	}
	return d, err
}

// saw notes the run that a reply was about.
func (h *handle) saw(id umbel.RunID) {
	if h.runID == "" && id != "" {
		h.seen.Store(&id)
	}
}

// check reports an ID that Attach was given and that cannot be one.
func (h *handle) check(op string) error {
	err := umbel.ValidateName("workflow ID", string(h.id))
	if err == nil {
		return nil
	}
	e, ok := err.(*umbel.Error) //nolint:errorlint // the validator returns nothing else
	if !ok {
		return err
	}
	named := *e
	named.Op = op
	return &named
}
