package server

import (
	"context"
	"strconv"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/history"
	"github.com/umbelhq/umbel/outbox"
)

// Begin implements umbel.Starter.
func (s *Server) Begin(ctx context.Context, r umbel.BeginRequest) (umbel.BeginReply, error) {
	return prompt(ctx, "begin", r, s.begin)
}

func (s *Server) begin(ctx context.Context, r umbel.BeginRequest) (umbel.BeginReply, error) {
	if err := s.check(ctx, "begin", r.Namespace, r.WorkflowID); err != nil {
		return umbel.BeginReply{}, err
	}
	b, err := s.history.Begin(ctx, r.Namespace, r.WorkflowID)
	if err != nil {
		return umbel.BeginReply{}, named("begin", r.WorkflowID, err)
	}
	if b.RunID == "" {
		return umbel.BeginReply{StagingID: umbel.NewRunID()}, nil
	}
	reply := umbel.BeginReply{Exists: true, RunID: b.RunID}
	copy(reply.Digest[:], b.Digest)
	return reply, nil
}

// Stage implements umbel.Starter.
func (s *Server) Stage(ctx context.Context, r umbel.StageRequest) (umbel.StageReply, error) {
	if err := s.check(ctx, "stage", r.Namespace, r.WorkflowID); err != nil {
		return umbel.StageReply{}, err
	}
	if err := checkStaging(r.StagingID); err != nil {
		return umbel.StageReply{}, named("stage", r.WorkflowID, err)
	}
	if r.Offset < 0 {
		return umbel.StageReply{}, named("stage", r.WorkflowID,
			umbel.Invalid("offset", strconv.FormatInt(r.Offset, 10), "must be the ordinal of the call's first row, 0 or more"))
	}
	if r.Offset > umbel.MaxRows-int64(min(len(r.Rows), umbel.MaxRows)) { // so written, nothing overflows
		return umbel.StageReply{}, named("stage", r.WorkflowID,
			umbel.Limit("fan-out", max(r.Offset, r.Offset+int64(len(r.Rows))), "rows of a run", umbel.MaxRows))
	}
	if len(r.Rows) == 0 {
		return umbel.StageReply{Next: r.Offset}, nil
	}
	if err := checkRows(r.Rows); err != nil {
		return umbel.StageReply{}, named("stage", r.WorkflowID, err)
	}
	if err := s.memory.admit(ctx, s); err != nil {
		return umbel.StageReply{}, named("stage", r.WorkflowID, err)
	}
	next, err := s.rows.Stage(ctx, s.staging(r.Namespace, r.WorkflowID, r.StagingID), r.Offset, r.Rows)
	if umbel.CodeOf(err) == umbel.CodeLimit { // it can never be committed: nothing of it is to stay
		_ = s.rows.Discard(context.WithoutCancel(ctx), s.staging(r.Namespace, r.WorkflowID, r.StagingID)) // or it expires
	}
	return umbel.StageReply{Next: next}, named("stage", r.WorkflowID, err)
}

// Commit implements umbel.Starter.
func (s *Server) Commit(ctx context.Context, r umbel.CommitRequest) (umbel.CommitReply, error) {
	return prompt(ctx, "start", r, s.commit)
}

func (s *Server) commit(ctx context.Context, r umbel.CommitRequest) (umbel.CommitReply, error) {
	if err := s.check(ctx, "start", r.Namespace, r.WorkflowID); err != nil {
		return umbel.CommitReply{}, err
	}
	if err := checkCommit(&r); err != nil {
		return umbel.CommitReply{}, named("start", r.WorkflowID, err)
	}
	if r.Scheduled > 0 {
		if err := s.memory.admit(ctx, s); err != nil {
			return umbel.CommitReply{}, named("start", r.WorkflowID, err)
		}
	}
	st, err := s.history.Start(ctx, history.Start{
		Namespace: r.Namespace, WorkflowID: r.WorkflowID, ID: r.StagingID, Rows: r.Rows, Scheduled: r.Scheduled,
		Types: r.Types, Digest: digestOf(r), OnExisting: r.OnExisting, TTL: s.cfg.StagingTTL,
	})
	if err != nil {
		return umbel.CommitReply{}, named("start", r.WorkflowID, err)
	}
	return umbel.CommitReply{RunID: st.RunID, Scheduled: st.Scheduled, Attached: st.Attached}, nil
}

// Discard implements umbel.Starter.
func (s *Server) Discard(ctx context.Context, r umbel.DiscardRequest) error {
	if err := s.check(ctx, "discard", r.Namespace, r.WorkflowID); err != nil {
		return err
	}
	if err := checkStaging(r.StagingID); err != nil {
		return named("discard", r.WorkflowID, err)
	}
	return named("discard", r.WorkflowID, s.rows.Discard(ctx, s.staging(r.Namespace, r.WorkflowID, r.StagingID)))
}

func (s *Server) staging(namespace string, id umbel.WorkflowID, staging umbel.StagingID) outbox.Staging {
	return outbox.Staging{Namespace: namespace, WorkflowID: id, ID: staging, TTL: s.cfg.StagingTTL}
}

// check is what every call about a workflow begins with.
func (s *Server) check(ctx context.Context, op, namespace string, id umbel.WorkflowID) error {
	if err := s.open(ctx, op); err != nil {
		return err
	}
	if err := umbel.ValidateName("namespace", namespace); err != nil {
		return named(op, "", err)
	}
	return named(op, "", umbel.ValidateName("workflow ID", string(id)))
}

// checkStaging holds a staging ID to what NewRunID draws: it becomes a run's ID, and keys are named by it.
func checkStaging(id umbel.StagingID) error {
	if len(id) != runIDBytes {
		return umbel.Invalid("staging ID", string(id), "must be 26 lower-case letters and digits, as Begin returns it")
	}
	for _, c := range []byte(id) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return umbel.Invalid("staging ID", string(id), "must be 26 lower-case letters and digits, as Begin returns it")
		}
	}
	return nil
}

const runIDBytes = 26

// checkRows checks rows that one call brings.
func checkRows(rows []umbel.StagedRow) error {
	if len(rows) > umbel.MaxStageRows {
		return umbel.Limit("call", int64(len(rows)), "rows of a staging call", umbel.MaxStageRows)
	}
	bytes := 0
	for i, r := range rows {
		if err := r.Validate(); err != nil {
			return onOrdinal(err, i)
		}
		if bytes += len(r.Input.Data); bytes > umbel.MaxStageBytes && i > 0 {
			return umbel.Limit("call", int64(bytes), "bytes of a staging call", umbel.MaxStageBytes)
		}
	}
	return nil
}

// onOrdinal says which row of a call an error is about.
func onOrdinal(err error, i int) error {
	e, ok := err.(*umbel.Error) //nolint:errorlint // validators return nothing else
	if !ok {
		return err
	}
	e.Field = "row " + strconv.Itoa(i) + " of the call: " + e.Field
	return e
}

// checkCommit checks a commit and draws the staging ID of one that has none.
func checkCommit(r *umbel.CommitRequest) error {
	if r.Scheduled < 0 || int64(len(r.Rows)) > r.Scheduled {
		return umbel.Invalid("scheduled", strconv.FormatInt(r.Scheduled, 10), "must be the number of all rows, those in the call included")
	}
	if r.Scheduled > umbel.MaxRows {
		return umbel.Limit("fan-out", r.Scheduled, "rows of a run", umbel.MaxRows)
	}
	if r.OnExisting < umbel.SameInputs || r.OnExisting > umbel.Reject {
		return umbel.Invalid("on existing", strconv.Itoa(int(r.OnExisting)), "must be 0 (same inputs), 1 (existing) or 2 (reject)")
	}
	if r.StagingID == "" {
		if int64(len(r.Rows)) != r.Scheduled {
			return umbel.Invalid("staging ID", "", "must name what is staged if the call does not carry all rows")
		}
		r.StagingID = umbel.NewRunID()
	}
	if err := checkStaging(r.StagingID); err != nil {
		return err
	}
	if err := checkRows(r.Rows); err != nil {
		return err
	}
	if len(r.Types) > umbel.MaxRoutes {
		return umbel.Limit("call", int64(len(r.Types)), "activity types of a run", umbel.MaxRoutes)
	}
	for _, t := range r.Types {
		if err := t.Validate(); err != nil {
			return err
		}
	}
	return nil
}
