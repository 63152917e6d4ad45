package client

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/umbelhq/umbel"
)

// handle is what of a Run does not depend on its type.
type handle struct {
	c        *Client
	id       umbel.WorkflowID
	runID    umbel.RunID // empty: the workflow's current run
	attached bool
	seen     atomic.Pointer[umbel.RunID] // the run that the last call was about
}

// current returns the run that the handle means, or the one that the last call found.
func (h *handle) current() umbel.RunID {
	if id := h.seen.Load(); h.runID == "" && id != nil {
		return *id
	}
	return h.runID
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

// broken is the error for a reply that breaks the contract.
func (h *handle) broken(op, reason string) error {
	return &umbel.Error{Code: umbel.CodeInternal, Op: op, WorkflowID: h.id, RunID: h.current(), Reason: reason}
}
