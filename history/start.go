package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/lua"
	"github.com/umbelhq/umbel/outbox"
)

// Start is a run that a server starts: rows that are staged, then Rows.
type Start struct {
	Namespace  string
	WorkflowID umbel.WorkflowID
	ID         umbel.StagingID // what is staged becomes the run of this ID
	Rows       []umbel.StagedRow
	Scheduled  int64
	Types      []umbel.TypePolicy
	Digest     umbel.Digest
	OnExisting umbel.OnExisting
	TTL        time.Duration // of what is staged; 0: outbox.StagingTTL
}

// Started says which run a start led to.
type Started struct {
	RunID     umbel.RunID
	Scheduled int64
	Attached  bool // it existed
}

// Start makes a run of what is staged and of s.Rows: its events and rows appear together, or not at all.
func (h *Redis) Start(ctx context.Context, s Start) (Started, error) {
	st := outbox.Staging{Namespace: s.Namespace, WorkflowID: s.WorkflowID, ID: s.ID, TTL: s.TTL}
	if int64(len(s.Rows)) == s.Scheduled && len(s.Rows) > 0 {
		return h.startSmall(ctx, s, st)
	}
	if len(s.Rows) > 0 {
		if _, err := h.outbox.Stage(ctx, st, s.Scheduled-int64(len(s.Rows)), s.Rows); err != nil {
			if e, ok := errors.AsType[*umbel.Error](err); ok && e.Code == umbel.CodeConflict {
				return h.attach(ctx, s) // committed already: this start is a repeat
			}
			return Started{}, err
		}
	}
	names, err := h.outbox.Staged(ctx, st)
	if err != nil {
		return Started{}, err
	}
	for range maxCommitTries {
		call, err := h.commitCall(s, st, names, "")
		if err != nil {
			return Started{}, err
		}
		raw, err := h.scripts.Run(ctx, call)
		if err != nil {
			return Started{}, outbox.Failure("start", err)
		}
		r, err := lua.ParseCommit(raw)
		if err != nil {
			return Started{}, outbox.Failure("start", err)
		}
		if r.Outcome == "routes" { // another call has staged since the table was read
			h.outbox.Forget(st)
			if names, err = h.outbox.Staged(ctx, st); err != nil {
				return Started{}, err
			}
			continue
		}
		return h.committed(ctx, s, st, r)
	}
	return Started{}, lost(s, "others add to the same staging at the same time")
}

// maxCommitTries is more than enough unless several callers share a staging.
const maxCommitTries = 5

// startSmall stages and commits in one round trip.
func (h *Redis) startSmall(ctx context.Context, s Start, st outbox.Staging) (Started, error) {
	stage, err := h.outbox.StageCall(st, s.Rows)
	if err != nil {
		return Started{}, err
	}
	commit, err := h.commitCall(s, st, stage.Routes, stage.Sum)
	if err != nil {
		return Started{}, err
	}
	raw, err := h.scripts.RunInOrder(ctx, []lua.Call{stage.Call, commit})
	if err != nil {
		return Started{}, outbox.Failure("start", err)
	}
	// whatever staging said, the commit takes these rows and no others
	r, err := lua.ParseCommit(raw[1])
	if err != nil {
		return Started{}, outbox.Failure("start", err)
	}
	return h.committed(ctx, s, st, r)
}

func (h *Redis) commitCall(s Start, st outbox.Staging, names []string, sum string) (lua.Call, error) {
	sh, wf := h.keys(Workflow{Namespace: s.Namespace, ID: s.WorkflowID})
	run := sh.Run(string(s.ID))
	types, err := outbox.EncodeTypes(s.Types)
	if err != nil {
		return lua.Call{}, err
	}
	started, err := encodeEvent(nil, umbel.Event{Type: umbel.WorkflowStarted, RunID: s.ID, Scheduled: s.Scheduled})
	if err != nil {
		return lua.Call{}, err
	}
	return lua.Commit{
		Run: run.Record(), Inputs: run.Inputs(), Workflow: wf.Record, History: wf.History,
		Ready: sh.Ready(), Backlog: sh.Backlog(), Runs: sh.Runs(s.Namespace), Routes: h.outbox.StagedRoutes(st, names),
		ID: string(s.ID), Namespace: s.Namespace, WorkflowID: string(s.WorkflowID), Rows: s.Scheduled,
		Digest: s.Digest[:], Types: types, Started: started, ClosedEmpty: closings.Completed,
		Wake: h.outbox.Wake(sh.Index), MaxSeq: MaxSeq, Sum: sum,
	}.Call(), nil
}

// committed says what a commit's outcome means to the start.
func (h *Redis) committed(ctx context.Context, s Start, st outbox.Staging, r lua.CommitReply) (Started, error) {
	switch r.Outcome {
	case "ok", "again":
		h.outbox.Forget(st)
		return Started{RunID: s.ID, Scheduled: r.Rows}, nil
	case "exists":
		_ = h.outbox.Discard(context.WithoutCancel(ctx), st) // or it expires
		return existing(s, umbel.RunID(r.Run), r.Rows, []byte(r.Digest))
	case "other", "routes":
		return Started{}, lost(s, "the same staging holds other rows")
	case "full":
		return Started{}, positionError("start", Workflow{ID: s.WorkflowID}, Position{}, "full", r.Number)
	}
	return Started{}, lost(s, fmt.Sprintf("%d of %d rows are staged", r.Number, s.Scheduled))
}

// attach treats the workflow's run as one that exists, or as this start's own.
func (h *Redis) attach(ctx context.Context, s Start) (Started, error) {
	b, err := h.Begin(ctx, s.Namespace, s.WorkflowID)
	if err != nil {
		return Started{}, err
	}
	switch b.RunID {
	case s.ID:
		return Started{RunID: s.ID, Scheduled: b.Scheduled}, nil
	case "": // no run at all: others add to the same staging
		return Started{}, lost(s, "others add to the same staging at the same time")
	}
	return existing(s, b.RunID, b.Scheduled, b.Digest)
}

func existing(s Start, run umbel.RunID, rows int64, digest []byte) (Started, error) {
	e := &umbel.Error{
		Code: umbel.CodeAlreadyExists, Op: "start", WorkflowID: s.WorkflowID, RunID: run, NotApplied: true,
		Reason: "exists with other inputs or options; choose another workflow ID, or ask for Existing to attach without comparing",
	}
	switch {
	case s.OnExisting == umbel.Reject:
		e.Reason = "exists"
		return Started{}, e
	case s.OnExisting == umbel.SameInputs && (s.Digest == umbel.Digest{} || !bytes.Equal(digest, s.Digest[:])):
		return Started{}, e
	}
	return Started{RunID: run, Scheduled: rows, Attached: true}, nil
}

func lost(s Start, why string) error {
	return &umbel.Error{
		Code: umbel.CodeStagingLost, Op: "start", WorkflowID: s.WorkflowID, RunID: s.ID, NotApplied: true,
		Reason: "what was staged has expired or is incomplete (" + why + "); start again",
	}
}

// Begun is what is known of a workflow before a start.
type Begun struct {
	RunID     umbel.RunID // "" if there is no such workflow
	Scheduled int64
	Digest    []byte
}

// Begin reads which run a workflow has.
func (h *Redis) Begin(ctx context.Context, namespace string, id umbel.WorkflowID) (Begun, error) {
	_, k := h.keys(Workflow{Namespace: namespace, ID: id})
	var vals []any
	err := h.scripts.Retry(ctx, func() (err error) {
		vals, err = h.rdb.HMGet(ctx, k.Record, "run", "n", "digest").Result()
		return err
	})
	if err != nil {
		return Begun{}, outbox.Failure("begin", err)
	}
	text := func(i int) string { s, _ := vals[i].(string); return s }
	n, _ := strconv.ParseInt(text(1), 10, 64) // a run that is written from outside has no n here
	return Begun{RunID: umbel.RunID(text(0)), Scheduled: n, Digest: []byte(text(2))}, nil
}
