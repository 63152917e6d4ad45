package client

import (
	"context"
	"strconv"
	"unicode/utf8"

	"github.com/umbelhq/umbel"
)

// cancel is [Run.Cancel].
func (h *handle) cancel(ctx context.Context, reason string, ordinals []int64) error {
	if err := h.checkCancel(reason, ordinals); err != nil {
		return err
	}
	runID := h.runID
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
			return err
		}
		h.saw(rep.RunID)
		runID = rep.RunID
		if len(ordinals) == 0 {
			return nil
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
		if o < 0 || o > umbel.MaxOrdinal {
			e = umbel.Invalid("ordinal", strconv.FormatInt(o, 10), "must be from 0 to "+strconv.Itoa(umbel.MaxOrdinal))
			break
		}
	}
	if e == nil {
		return nil
	}
	e.Op, e.WorkflowID, e.RunID = "cancel", h.id, h.runID
	return e
}
