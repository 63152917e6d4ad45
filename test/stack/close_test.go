package stack

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/server"
)

// everyCall calls each operation of an engine once.
func everyCall(ctx context.Context, e umbel.Engine) map[string]error {
	errs := map[string]error{}
	_, errs["begin"] = e.Begin(ctx, umbel.BeginRequest{Namespace: ns, WorkflowID: "x"})
	_, errs["stage"] = e.Stage(ctx, umbel.StageRequest{Namespace: ns, WorkflowID: "x", StagingID: umbel.NewRunID(), Rows: rows(1)})
	_, errs["commit"] = e.Commit(ctx, umbel.CommitRequest{Namespace: ns, WorkflowID: "x", Rows: rows(1), Scheduled: 1})
	errs["discard"] = e.Discard(ctx, umbel.DiscardRequest{Namespace: ns, WorkflowID: "x", StagingID: umbel.NewRunID()})
	_, errs["poll"] = e.Poll(ctx, pollRequest(1))
	_, errs["renew"] = e.Renew(ctx, umbel.RenewRequest{Namespace: ns, Worker: "hand"})
	_, errs["report"] = e.Report(ctx, umbel.ReportRequest{Namespace: ns, Worker: "hand"})
	_, errs["describe"] = e.Describe(ctx, umbel.DescribeRequest{Namespace: ns, WorkflowID: "x"})
	_, errs["results"] = e.Results(ctx, umbel.ResultsRequest{Namespace: ns, WorkflowID: "x"})
	_, errs["cancel"] = e.Cancel(ctx, umbel.CancelRequest{Namespace: ns, WorkflowID: "x"})
	_, errs["history"] = e.History(ctx, umbel.HistoryRequest{Namespace: ns, WorkflowID: "x"})
	_, errs["list"] = e.List(ctx, umbel.ListRequest{Namespace: ns})
	return errs
}

// Case 52: Close twice and at the same time; every call after it is unavailable and surely changed nothing; nothing
// is left behind, which the bubble's end proves.
func TestCase52Close(t *testing.T) {
	onMini(t, func(s *stack) {
		e := s.open()
		s.start(e, "w", rows(5))
		go func() { _ = e.Close() }()
		if err := errors.Join(e.Close(), e.Close()); err != nil {
			s.t.Error(err)
		}
		before := s.dump()
		for name, err := range everyCall(s.t.Context(), e) {
			got, ok := errors.AsType[*umbel.Error](err)
			if !ok || got.Code != umbel.CodeUnavailable || !umbel.SafeToRetry(err) {
				s.t.Errorf("%s after Close: %v", name, err)
			}
		}
		if s.dump() != before {
			s.t.Error("a closed server has written")
		}
	})
}

// Case 52: Close ends the calls that wait, with an error that says so.
func TestCase52CloseEndsWaits(t *testing.T) {
	onMini(t, func(s *stack) {
		e := s.open()
		s.start(e, "w", rows(1, func(_ int, r *umbel.StagedRow) { r.Delay = time.Hour }))
		errs := make(chan error, 3)
		go func() {
			r := pollRequest(1)
			r.Wait = umbel.MaxPollWait
			_, err := e.Poll(s.t.Context(), r)
			errs <- err
		}()
		go func() {
			_, err := e.Describe(s.t.Context(), umbel.DescribeRequest{Namespace: ns, WorkflowID: "w", Wait: umbel.MaxPollWait})
			errs <- err
		}()
		go func() {
			_, err := e.Results(s.t.Context(), umbel.ResultsRequest{Namespace: ns, WorkflowID: "w", Wait: umbel.MaxPollWait})
			errs <- err
		}()
		synctest.Wait()
		began := time.Now()
		_ = e.Close()
		for range 3 {
			if err := <-errs; !errors.Is(err, umbel.ErrUnavailable) {
				s.t.Errorf("%v", err)
			}
		}
		if took := time.Since(began); took > time.Second {
			s.t.Errorf("Close took %v", took)
		}
	})
}

// Case 52: a context that has ended: every call says so, at once, and changes nothing.
func TestCase52EndedContext(t *testing.T) {
	onMini(t, func(s *stack) {
		e := s.open()
		s.start(e, "w", rows(5))
		ctx, cancel := context.WithCancelCause(s.t.Context())
		why := errors.New("because")
		cancel(why)
		before := s.dump()
		for name, err := range everyCall(ctx, e) {
			if !errors.Is(err, umbel.ErrUnavailable) || !errors.Is(err, why) {
				s.t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := server.Open(ctx, s.redis.Client, s.config); err == nil {
			s.t.Error("a server opened in a context that has ended")
		}
		if s.dump() != before {
			s.t.Error("something was written")
		}
		if _, err := client.FanOut(ctx, s.connect(e), double, func(func(int) bool) {}); !errors.Is(err, umbel.ErrUnavailable) {
			s.t.Errorf("start: %v", err)
		}
	})
}

// Case 54: a clean life logs nothing at level error, and no warning either.
func TestCase54CleanLife(t *testing.T) {
	onEach(t, func(s *stack) {
		e := s.open()
		s.start(e, "w", rows(50))
		s.finish(e, s.claim(e, 50))
		s.end()
		if s.log.count("level=ERROR")+s.log.count("level=WARN") > 0 {
			s.t.Errorf("the log has complaints:\n%s", s.log.text())
		}
	})
}
