package server

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/history"
	"github.com/umbelhq/umbel/outbox"
)

// find returns the run that a request means: the one that it names, else the workflow's current one.
func (s *Server) find(ctx context.Context, op, namespace string, id umbel.WorkflowID, run umbel.RunID) (*outbox.Run, error) {
	if err := s.check(ctx, op, namespace, id); err != nil {
		return nil, err
	}
	if err := umbel.ValidateLabel("run ID", string(run)); err != nil {
		return nil, named(op, id, err)
	}
	if run == "" {
		var err error
		if run, err = s.rows.Current(ctx, namespace, id); err != nil {
			return nil, named(op, id, err)
		}
	}
	if run != "" {
		r, err := s.rows.Run(ctx, s.rows.Shard(namespace, id).Index, run)
		if err != nil {
			return nil, named(op, id, err)
		}
		if r != nil && r.Namespace == namespace && r.WorkflowID == id {
			return r, nil
		}
	}
	return nil, &umbel.Error{
		Code: umbel.CodeNotFound, Op: op, WorkflowID: id, RunID: run, NotApplied: true,
		Reason: "no such workflow in namespace " + strconv.Quote(namespace),
	}
}

// Describe implements umbel.Gatherer.
func (s *Server) Describe(ctx context.Context, r umbel.DescribeRequest) (umbel.DescribeReply, error) {
	return prompt(ctx, "describe", r, s.describe)
}

func (s *Server) describe(ctx context.Context, r umbel.DescribeRequest) (umbel.DescribeReply, error) {
	run, err := s.find(ctx, "describe", r.Namespace, r.WorkflowID, r.RunID)
	if err != nil {
		return umbel.DescribeReply{}, err
	}
	if err := umbel.ValidateDuration("wait", r.Wait, 0, umbel.MaxPollWait); err != nil {
		return umbel.DescribeReply{}, named("describe", r.WorkflowID, err)
	}
	var reply umbel.DescribeReply
	err = s.await(ctx, "describe", run, true, r.Wait, func() (bool, error) {
		st, err := s.rows.Standing(ctx, run)
		reply = umbel.DescribeReply{RunInfo: infoOf(run, st)}
		return st.Status != umbel.StatusRunning, err
	})
	return reply, named("describe", r.WorkflowID, err)
}

// infoOf is how a run stands, as readers get it.
func infoOf(run *outbox.Run, st outbox.Standing) umbel.RunInfo {
	info := umbel.RunInfo{
		WorkflowID: run.WorkflowID, RunID: run.ID, Status: st.Status, Counts: st.Counts,
		StartedAt: st.StartedAt, ClosedAt: st.ClosedAt,
	}
	for _, r := range run.Routes {
		if !slices.Contains(info.Types, r.Type) {
			info.Types = append(info.Types, r.Type)
		}
	}
	return info
}

// Results implements umbel.Gatherer.
func (s *Server) Results(ctx context.Context, r umbel.ResultsRequest) (umbel.ResultsReply, error) {
	return prompt(ctx, "results", r, s.results)
}

func (s *Server) results(ctx context.Context, r umbel.ResultsRequest) (umbel.ResultsReply, error) {
	if r.RunID == "" && r.Cursor != "" { // a cursor stays with its run
		id, err := history.CursorRun(r.Cursor)
		if err != nil {
			return umbel.ResultsReply{}, named("results", r.WorkflowID, err)
		}
		r.RunID = id
	}
	run, err := s.find(ctx, "results", r.Namespace, r.WorkflowID, r.RunID)
	if err != nil {
		return umbel.ResultsReply{}, err
	}
	if err := checkResults(r); err != nil {
		return umbel.ResultsReply{}, named("results", r.WorkflowID, err)
	}
	reply := umbel.ResultsReply{RunID: run.ID}
	read := s.history.Results
	if r.Ordered {
		read = s.history.Ordered
	}
	from := r.Cursor
	err = s.await(ctx, "results", run, false, r.Wait, func() (bool, error) {
		// whether the run is closed is read first: what is recorded after that is another page's
		st, err := s.rows.Standing(ctx, run)
		if err != nil {
			return false, err
		}
		page, err := read(ctx, run, from, cmp.Or(r.Limit, umbel.MaxPageItems), r.WithInputs)
		if err != nil {
			return false, err
		}
		all := len(page.Results)
		if r.Status != "" {
			page.Results = slices.DeleteFunc(page.Results, func(x umbel.Result[umbel.Payload]) bool { return x.Status != r.Status })
		}
		from = page.Next // what was read without a result need not be read again
		reply.Results, reply.Next = page.Results, page.Next
		reply.Done = page.End && st.Status != umbel.StatusRunning
		return all > 0 || reply.Done, nil // a page that the filter leaves empty advances all the same
	})
	return reply, named("results", r.WorkflowID, err)
}

func checkResults(r umbel.ResultsRequest) error {
	if err := checkLimit(r.Limit); err != nil {
		return err
	}
	switch r.Status {
	case "", umbel.StatusCompleted, umbel.StatusFailed, umbel.StatusCancelled:
	default:
		return umbel.Invalid("status", string(r.Status), "must be completed, failed or cancelled, or empty for all")
	}
	return umbel.ValidateDuration("wait", r.Wait, 0, umbel.MaxPollWait)
}

func checkLimit(n int) error {
	if n < 0 || n > umbel.MaxPageItems {
		return umbel.Invalid("limit", strconv.Itoa(n), "must be from 1 to "+strconv.Itoa(umbel.MaxPageItems)+", or 0 for that many")
	}
	return nil
}
