package client

import (
	"context"
	"strconv"
	"unicode/utf8"

	"github.com/umbelhq/umbel"
)

// cancel is [Admin.Cancel].
func (h *handle) cancel(ctx context.Context, reason string, ordinals []int64) (int64, error) {
	if err := h.checkCancel(reason, ordinals); err != nil {
		return 0, err
	}
	runID, cancelled := h.runID, int64(0)
	for {
		part := ordinals[:min(len(ordinals), umbel.MaxReportItems)]
		ordinals = ordinals[len(part):]
		req := umbel.CancelRequest{
			Namespace: h.c.namespace, WorkflowID: h.id, RunID: runID, Reason: reason, Ordinals: part,
		}
		rep, err := call(ctx, h.c, "cancel", h.id, func(ctx context.Context) (umbel.CancelReply, error) {
			return h.c.engine.Cancel(ctx, req)
		})
		if err != nil {
			return cancelled, err
		}
		h.saw(rep.RunID)
		runID = rep.RunID
		cancelled += rep.Cancelled
		if len(ordinals) == 0 {
			return cancelled, nil
		}
	}
}

func (h *handle) checkCancel(reason string, ordinals []int64) error {
	if err := h.check("cancel"); err != nil {
		return err
	}
	var e *umbel.Error
	switch {
	case len(reason) > umbel.MaxErrorMessageBytes:
		e = umbel.Limit("reason", int64(len(reason)), "bytes", umbel.MaxErrorMessageBytes)
	case !utf8.ValidString(reason):
		e = umbel.Invalid("reason", reason, "must be valid UTF-8")
	case ordinals != nil && len(ordinals) == 0:
		// Most likely a filter that matched nothing; it must not cancel everything.
		e = umbel.Invalid("ordinals", "[]", "must not be empty; leave them out to cancel the whole run")
	}
	for _, o := range ordinals {
		if e == nil {
			e = checkOrdinal(o)
		}
	}
	if e == nil {
		return nil
	}
	e.Op, e.WorkflowID, e.RunID = "cancel", h.id, h.runID
	return e
}

// checkOrdinal reports an ordinal that no row can have.
func checkOrdinal(o int64) *umbel.Error {
	if o < 0 || o > umbel.MaxOrdinal {
		return umbel.Invalid("ordinal", strconv.FormatInt(o, 10), "must be from 0 to "+strconv.Itoa(umbel.MaxOrdinal))
	}
	return nil
}
