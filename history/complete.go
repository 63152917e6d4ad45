package history

import (
	"cmp"
	"context"
	"strconv"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/lua"
	"github.com/umbelhq/umbel/outbox"
)

// Complete implements [Store].
func (h *Redis) Complete(ctx context.Context, wf Workflow, at Position, c Completion) (Outcome, int64, error) {
	wf, err := wf.withDefaults()
	if err != nil {
		return "", 0, err
	}
	if err := c.validate(); err != nil {
		return "", 0, err
	}
	if at.Token == "" {
		return "", 0, positionError("complete", wf, at, "fenced", 0)
	}
	if c.RunID != "" && wf.RunID != "" && c.RunID != wf.RunID {
		return h.drop(ctx, wf, at)
	}
	current, err := h.outbox.Current(ctx, wf.Namespace, wf.ID)
	if err != nil {
		return "", 0, err
	}
	sh, _ := h.keys(wf)
	run, err := h.outbox.Run(ctx, sh.Index, current)
	if err != nil {
		return "", 0, err
	}
	if run == nil {
		return "", 0, unknownOrdinal(wf, c.Ordinal)
	}
	if public := run.Public(); public != "" && c.RunID != "" && c.RunID != public {
		return h.drop(ctx, wf, at)
	}
	row, err := h.outbox.Look(ctx, run, c.Ordinal)
	switch {
	case err != nil:
		return "", 0, err
	case row.Status == "":
		return "", 0, unknownOrdinal(wf, c.Ordinal)
	case row.Status.Terminal() && !row.Muted: // for good
		return h.drop(ctx, wf, at)
	case !row.Status.Terminal() && c.Attempt > row.Tries+1:
		return "", 0, umbel.Invalid("attempt", strconv.Itoa(c.Attempt),
			"has not been started: the row is at attempt "+strconv.Itoa(row.Tries+1))
	}
	g, err := c.group(row.Route)
	if err != nil {
		return "", 0, err
	}
	r, err := h.outbox.Settle(ctx, outbox.Settlement{
		Run: run, Fence: lua.Fence{Token: string(at.Token), Head: at.Head}, Closings: closings, Groups: []lua.Group{g},
	})
	if err != nil {
		return "", 0, err
	}
	switch r.Outcome {
	case "ok":
		if len(r.Exceptions) == 0 {
			return Recorded, r.Number, nil
		}
		if r.Exceptions[0].Code == 'n' {
			return "", 0, unknownOrdinal(wf, c.Ordinal)
		}
		return Dropped, r.Number, nil
	case "closed":
		return h.drop(ctx, wf, at)
	case "absent":
		return "", 0, unknownOrdinal(wf, c.Ordinal)
	}
	return "", 0, positionError("complete", wf, at, r.Outcome, r.Number)
}

// drop drops a completion, if the token is still in force.
func (h *Redis) drop(ctx context.Context, wf Workflow, at Position) (Outcome, int64, error) {
	_, k := h.keys(wf)
	var vals []any
	err := h.scripts.Retry(ctx, func() (err error) {
		vals, err = h.rdb.HMGet(ctx, k.Record, "token", "head").Result()
		return err
	})
	if err != nil {
		return "", 0, outbox.Failure("complete", err)
	}
	if token, _ := vals[0].(string); token != string(at.Token) {
		return "", 0, positionError("complete", wf, at, "fenced", 0)
	}
	s, _ := vals[1].(string)
	head, _ := strconv.ParseInt(s, 10, 64) // absent is 0
	return Dropped, head, nil
}

func unknownOrdinal(wf Workflow, ordinal int64) error {
	return &umbel.Error{
		Code: umbel.CodeNotFound, Op: "complete", WorkflowID: wf.ID, RunID: wf.RunID, NotApplied: true,
		Field: "ordinal", Value: strconv.FormatInt(ordinal, 10), Reason: "is no row of the run",
	}
}

func (c Completion) validate() error {
	switch {
	case c.Ordinal < 0 || c.Ordinal > umbel.MaxOrdinal:
		return umbel.Invalid("ordinal", strconv.FormatInt(c.Ordinal, 10), "must be from 0 to "+strconv.Itoa(umbel.MaxOrdinal))
	case c.Attempt < 1 || c.Attempt > umbel.MaxAttempts:
		return umbel.Invalid("attempt", strconv.Itoa(c.Attempt), "must be from 1 to "+strconv.Itoa(umbel.MaxAttempts))
	}
	return cmp.Or(umbel.ValidateLabel("run ID", string(c.RunID)), c.Result.Validate("result"))
}

// group records c, whoever holds the row.
func (c Completion) group(route int) (lua.Group, error) {
	e := umbel.Event{Type: umbel.ActivityCompleted, Row: umbel.Row{Ordinal: c.Ordinal, Attempt: c.Attempt}, Result: c.Result}
	g := lua.Group{Verb: lua.Complete, Attempt: c.Attempt, Route: route}
	if c.Failure != nil {
		e.Type, e.Failure, e.Result, g.Verb = umbel.ActivityFailed, c.Failure, umbel.Payload{}, lua.Fail
	}
	b, err := encodeEvent(nil, e)
	g.Items = []lua.Item{{Ordinal: c.Ordinal, Event: b}}
	return g, err
}
