package server

import (
	"cmp"
	"context"
	"strconv"
	"unicode/utf8"

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
	err = s.await(ctx, "describe", run.ID, true, r.Wait, func() (bool, error) {
		st, err := s.rows.Standing(ctx, run)
		reply = umbel.DescribeReply{
			WorkflowID: run.WorkflowID, RunID: run.ID, Status: st.Status, Counts: st.Counts,
			StartedAt: st.StartedAt, ClosedAt: st.ClosedAt,
		}
		return st.Status != umbel.StatusRunning, err
	})
	return reply, named("describe", r.WorkflowID, err)
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
	err = s.await(ctx, "results", run.ID, false, r.Wait, func() (bool, error) {
		// whether the run is closed is read first: what is recorded after that is another page's
		st, err := s.rows.Standing(ctx, run)
		if err != nil {
			return false, err
		}
		page, err := read(ctx, run, from, cmp.Or(r.Limit, umbel.MaxPageItems), r.WithInputs)
		if err != nil {
			return false, err
		}
		from = page.Next // what was read without a result need not be read again
		reply.Results, reply.Next = page.Results, page.Next
		reply.Done = page.End && st.Status != umbel.StatusRunning
		return len(page.Results) > 0 || reply.Done, nil
	})
	return reply, named("results", r.WorkflowID, err)
}

func checkResults(r umbel.ResultsRequest) error {
	if err := checkLimit(r.Limit); err != nil {
		return err
	}
	return umbel.ValidateDuration("wait", r.Wait, 0, umbel.MaxPollWait)
}

func checkLimit(n int) error {
	if n < 0 || n > umbel.MaxPageItems {
		return umbel.Invalid("limit", strconv.Itoa(n), "must be from 1 to "+strconv.Itoa(umbel.MaxPageItems)+", or 0 for that many")
	}
	return nil
}

// Cancel implements umbel.Operator.
func (s *Server) Cancel(ctx context.Context, r umbel.CancelRequest) (umbel.CancelReply, error) {
	return prompt(ctx, "cancel", r, s.cancel)
}

func (s *Server) cancel(ctx context.Context, r umbel.CancelRequest) (umbel.CancelReply, error) {
	run, err := s.find(ctx, "cancel", r.Namespace, r.WorkflowID, r.RunID)
	if err != nil {
		return umbel.CancelReply{}, err
	}
	if err := checkCancel(r); err != nil {
		return umbel.CancelReply{}, named("cancel", r.WorkflowID, err)
	}
	reply := umbel.CancelReply{RunID: run.ID}
	if len(r.Ordinals) > 0 {
		reply.Cancelled, err = s.history.CancelRows(ctx, run, r.Ordinals)
	} else {
		reply.Cancelled, err = s.history.Cancel(ctx, run, r.Reason)
	}
	s.watchers.notify(run.ID, true)
	return reply, named("cancel", r.WorkflowID, err)
}

func checkCancel(r umbel.CancelRequest) error {
	if len(r.Reason) > umbel.MaxErrorMessageBytes {
		return umbel.Limit("reason", int64(len(r.Reason)), "bytes", umbel.MaxErrorMessageBytes)
	}
	if len(r.Ordinals) > umbel.MaxReportItems {
		return umbel.Limit("cancel", int64(len(r.Ordinals)), "ordinals of a call", umbel.MaxReportItems)
	}
	if !utf8.ValidString(r.Reason) {
		return umbel.Invalid("reason", r.Reason, "must be valid UTF-8")
	}
	for _, o := range r.Ordinals {
		if o < 0 || o > umbel.MaxOrdinal {
			return umbel.Invalid("ordinal", strconv.FormatInt(o, 10), "must be from 0 to "+strconv.Itoa(umbel.MaxOrdinal))
		}
	}
	return nil
}

// History implements umbel.Operator.
func (s *Server) History(ctx context.Context, r umbel.HistoryRequest) (umbel.HistoryReply, error) {
	return prompt(ctx, "history", r, s.readHistory)
}

func (s *Server) readHistory(ctx context.Context, r umbel.HistoryRequest) (umbel.HistoryReply, error) {
	if err := s.check(ctx, "history", r.Namespace, r.WorkflowID); err != nil {
		return umbel.HistoryReply{}, err
	}
	if err := checkLimit(r.Limit); err != nil {
		return umbel.HistoryReply{}, named("history", r.WorkflowID, err)
	}
	if r.From < 0 {
		return umbel.HistoryReply{}, named("history", r.WorkflowID,
			umbel.Invalid("from", strconv.FormatInt(r.From, 10), "must be a sequence number, 1 or more, or 0 for the first"))
	}
	wf := history.Workflow{Namespace: r.Namespace, ID: r.WorkflowID}
	head, err := s.history.Head(ctx, wf)
	if err != nil {
		return umbel.HistoryReply{}, named("history", r.WorkflowID, err)
	}
	if head == 0 {
		return umbel.HistoryReply{}, &umbel.Error{Code: umbel.CodeNotFound, Op: "history", WorkflowID: r.WorkflowID, NotApplied: true}
	}
	events, err := s.history.Read(ctx, wf, max(r.From, 1), cmp.Or(r.Limit, umbel.MaxPageItems))
	return umbel.HistoryReply{Events: events, Head: head}, named("history", r.WorkflowID, err)
}
