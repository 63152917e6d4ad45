package enginetest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/umbelhq/umbel"
)

// notFound: what is not there is not found, with the same words everywhere.
func notFound(s *suite) {
	other := umbel.NewRunID()
	s.start("w", rows(0, 1))
	for _, c := range []struct {
		id  umbel.WorkflowID
		run umbel.RunID
	}{{"none", ""}, {"w", other}} {
		_, err := alike(s, "describe", umbel.Engine.Describe, umbel.DescribeRequest{Namespace: ns, WorkflowID: c.id, RunID: c.run, Wait: time.Second})
		s.is("describe", err, umbel.ErrNotFound)
		_, err = alike(s, "results", umbel.Engine.Results, umbel.ResultsRequest{Namespace: ns, WorkflowID: c.id, RunID: c.run})
		s.is("results", err, umbel.ErrNotFound)
		_, err = alike(s, "cancel", umbel.Engine.Cancel, umbel.CancelRequest{Namespace: ns, WorkflowID: c.id, RunID: c.run})
		s.is("cancel", err, umbel.ErrNotFound)
		_, err = alike(s, "history", umbel.Engine.History, umbel.HistoryRequest{Namespace: ns, WorkflowID: c.id, RunID: c.run})
		if e := s.is("history", err, umbel.ErrNotFound); !umbel.SafeToRetry(err) || e.WorkflowID != c.id {
			s.Errorf("%+v", e)
		}
	}
}

// invalid: a value that breaks a rule is named with it, whether or not it can travel.
func invalid(s *suite) {
	for _, name := range []string{"", strings.Repeat("n", umbel.MaxNameBytes+1), "a\x00b", "a\nb", "a\xffb"} {
		_, err := s.e.Describe(s.Context(), umbel.DescribeRequest{Namespace: ns, WorkflowID: umbel.WorkflowID(name)})
		if e := s.is("describe", err, umbel.ErrInvalid); e.Field != "workflow ID" || e.Value == "" || e.Reason == "" || !e.NotApplied {
			s.Errorf("%q: %+v", name, e)
		}
		_, err = s.e.Poll(s.Context(), umbel.PollRequest{Namespace: ns, TaskQueue: pool, Types: []string{task, name}, Worker: me, MaxRows: 1})
		if e := s.is("poll", err, umbel.ErrInvalid); e.Field != "activity type" {
			s.Errorf("%q: %+v", name, e)
		}
	}
	s.start("w", rows(0, 1))
	_, err := alike(s, "results", umbel.Engine.Results, umbel.ResultsRequest{Namespace: ns, WorkflowID: "w", Limit: umbel.MaxPageItems + 1})
	s.is("results", err, umbel.ErrInvalid)
	_, err = alike(s, "stage", umbel.Engine.Stage, umbel.StageRequest{
		Namespace: ns, WorkflowID: "w", StagingID: umbel.NewRunID(), Rows: make([]umbel.StagedRow, umbel.MaxStageRows+1),
	})
	s.is("stage", err, umbel.ErrLimit)
}

// endedContext: every call says that its context ended, and why.
func endedContext(s *suite) {
	why := errors.New("enough")
	ctx, stop := context.WithCancelCause(s.Context())
	stop(why)
	late, cancel := context.WithDeadline(s.Context(), time.Now().Add(-time.Second))
	defer cancel()
	for ctx, cause := range map[context.Context]error{ctx: why, late: context.DeadlineExceeded} {
		for name, call := range calls(s.e) {
			err := call(ctx)
			if !errors.Is(err, umbel.ErrUnavailable) || !errors.Is(err, cause) {
				s.Errorf("%s: %v, want unavailable because of %v", name, err, cause)
			}
		}
	}
}

// calls makes each call of the seam.
func calls(e umbel.Engine) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Begin": func(ctx context.Context) error {
			_, err := e.Begin(ctx, umbel.BeginRequest{Namespace: ns, WorkflowID: "w"})
			return err
		},
		"Stage": func(ctx context.Context) error {
			_, err := e.Stage(ctx, umbel.StageRequest{Namespace: ns, WorkflowID: "w", StagingID: umbel.NewRunID(), Rows: rows(0, 1)})
			return err
		},
		"Commit": func(ctx context.Context) error {
			_, err := e.Commit(ctx, umbel.CommitRequest{Namespace: ns, WorkflowID: "w", Rows: rows(0, 1), Scheduled: 1})
			return err
		},
		"Discard": func(ctx context.Context) error {
			return e.Discard(ctx, umbel.DiscardRequest{Namespace: ns, WorkflowID: "w", StagingID: umbel.NewRunID()})
		},
		"Poll": func(ctx context.Context) error {
			_, err := e.Poll(ctx, pollRequest(1))
			return err
		},
		"Renew": func(ctx context.Context) error {
			_, err := e.Renew(ctx, umbel.RenewRequest{Namespace: ns, Worker: me, Tokens: []umbel.Token{"t"}})
			return err
		},
		"Leave": func(ctx context.Context) error {
			return e.Leave(ctx, umbel.LeaveRequest{Namespace: ns, Worker: me})
		},
		"Report": func(ctx context.Context) error {
			_, err := e.Report(ctx, umbel.ReportRequest{Namespace: ns, Worker: me, Items: []umbel.ReportItem{{Token: "t", Outcome: umbel.OutcomeReleased}}})
			return err
		},
		"Describe": func(ctx context.Context) error {
			_, err := e.Describe(ctx, umbel.DescribeRequest{Namespace: ns, WorkflowID: "w"})
			return err
		},
		"Results": func(ctx context.Context) error {
			_, err := e.Results(ctx, umbel.ResultsRequest{Namespace: ns, WorkflowID: "w"})
			return err
		},
		"Cancel": func(ctx context.Context) error {
			_, err := e.Cancel(ctx, umbel.CancelRequest{Namespace: ns, WorkflowID: "w"})
			return err
		},
		"History": func(ctx context.Context) error {
			_, err := e.History(ctx, umbel.HistoryRequest{Namespace: ns, WorkflowID: "w"})
			return err
		},
		"List": func(ctx context.Context) error {
			_, err := e.List(ctx, umbel.ListRequest{Namespace: ns})
			return err
		},
	}
}
