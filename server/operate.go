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
	if err := umbel.ValidateDuration("wait", r.Wait, 0, umbel.MaxPollWait); err != nil {
		return umbel.HistoryReply{}, named("history", r.WorkflowID, err)
	}
	var run *outbox.Run
	if r.RunID != "" || r.Wait > 0 {
		var err error
		if run, err = s.find(ctx, "history", r.Namespace, r.WorkflowID, r.RunID); err != nil {
			return umbel.HistoryReply{}, err
		}
	}
	wf := history.Workflow{Namespace: r.Namespace, ID: r.WorkflowID}
	var reply umbel.HistoryReply
	read := func() (err error) {
		if reply.Head, err = s.history.Head(ctx, wf); err != nil {
			return err
		}
		if reply.Head == 0 {
			return &umbel.Error{Code: umbel.CodeNotFound, NotApplied: true}
		}
		reply.Events, err = s.history.Read(ctx, wf, max(r.From, 1), cmp.Or(r.Limit, umbel.MaxPageItems))
		return err
	}
	err := s.await(ctx, "history", run, false, r.Wait, func() (bool, error) {
		if err := read(); err != nil || len(reply.Events) > 0 || run == nil {
			return true, err
		}
		st, err := s.rows.Standing(ctx, run)
		if err != nil || st.Status == umbel.StatusRunning {
			return false, err
		}
		return true, read() // what came with the close; nothing follows it
	})
	return reply, named("history", r.WorkflowID, err)
}
