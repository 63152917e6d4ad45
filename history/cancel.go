package history

import (
	"context"
	"errors"
	"slices"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/lua"
	"github.com/umbelhq/umbel/outbox"
)

// Cancel cancels what is open of a run and closes it, in one step. It returns how many rows that was; a run
// that is closed has none.
func (h *Redis) Cancel(ctx context.Context, run *outbox.Run, reason string) (int64, error) {
	requested, err := encodeEvent(nil, umbel.Event{Type: umbel.CancelRequested, Reason: reason})
	if err != nil {
		return 0, err
	}
	for {
		r, err := h.scripts.Cancel(ctx, lua.Cancel{
			RunKeys: h.outbox.RunKeys(run), Ready: run.Shard.Ready(), Backlog: run.Shard.Backlog(),
			Runs: run.Shard.Runs(run.Namespace), Routes: h.outbox.RouteKeys(run), ID: string(run.ID), Requested: requested, Closing: closings.Cancelled,
			Wake: h.outbox.Wake(run.Shard.Index), MaxSeq: MaxSeq,
		})
		if err != nil {
			return 0, outbox.Failure("cancel", err)
		}
		switch r.Outcome {
		case "ok", "closed":
			return r.Cancelled, nil
		case "routes":
			if run, err = h.outbox.Reload(ctx, run); err != nil {
				return 0, err
			}
			continue
		case "absent":
			return 0, &umbel.Error{
				Code: umbel.CodeNotFound, Op: "cancel", WorkflowID: run.WorkflowID, RunID: run.ID, NotApplied: true,
			}
		}
		return 0, positionError("cancel", Workflow{ID: run.WorkflowID, RunID: run.ID}, Position{}, r.Outcome, r.Head)
	}
}

// CancelRows cancels rows of a run, whoever holds them, and returns how many of them were open. If the reply is lost
// and the call repeated, that may be 0 although the calls together cancelled some: they are open no more. With an error,
// it is how many were cancelled before it.
func (h *Redis) CancelRows(ctx context.Context, run *outbox.Run, ordinals []int64) (int64, error) {
	ordinals = slices.Compact(slices.Sorted(slices.Values(ordinals)))
	n, err := h.outbox.Rows(ctx, run.Namespace, run.WorkflowID, run.ID)
	if err != nil {
		return 0, err
	}
	ordinals = slices.DeleteFunc(ordinals, func(o int64) bool { return o >= n })
	var cancelled int64
	for part := range slices.Chunk(ordinals, outbox.MaxSettle) {
		items, err := h.outbox.Items(ctx, run, part)
		if err != nil {
			return cancelled, partly(err, cancelled)
		}
		b := Batch{Run: run}
		for i, o := range part {
			b.Rows = append(b.Rows, Settled{Ending: Cancelled, Ordinal: o, Attempt: 1, Route: items[i].Route})
		}
		answers, errs := h.Settle(ctx, []Batch{b})
		if errs[0] != nil {
			return cancelled, partly(errs[0], cancelled)
		}
		for _, a := range answers[0].Rows {
			if a.Code == Accepted {
				cancelled++
			}
		}
	}
	return cancelled, nil
}

// partly is err of a call that had cancelled rows before it: it no longer says that nothing was applied.
func partly(err error, cancelled int64) error {
	e, ok := errors.AsType[*umbel.Error](err)
	if !ok || cancelled == 0 || !e.NotApplied {
		return err
	}
	c := *e
	c.NotApplied = false
	return &c
}
