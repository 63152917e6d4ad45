package stack

import (
	"strconv"
	"time"

	"github.com/umbelhq/umbel"
)

// What a test does by hand, as a client and a worker would, on the default namespace and task queue.

const (
	ns    = umbel.DefaultNamespace
	queue = umbel.DefaultTaskQueue
	task  = "task" // the activity type of rows by hand
)

// text is a payload of plain text.
func text(v string) umbel.Payload {
	return umbel.Payload{ContentType: "text/plain", Data: []byte(v)}
}

// rows are n rows whose inputs are their ordinals.
func rows(n int, change ...func(i int, r *umbel.StagedRow)) []umbel.StagedRow {
	out := make([]umbel.StagedRow, n)
	for i := range out {
		out[i] = umbel.StagedRow{Type: task, TaskQueue: queue, Input: text(strconv.Itoa(i))}
		for _, c := range change {
			c(i, &out[i])
		}
	}
	return out
}

// retry is the policy of rows by hand.
func retry(p umbel.RetryPolicy) []umbel.TypePolicy { return []umbel.TypePolicy{{Type: task, Retry: p}} }

// start starts a run in one call.
func (s *stack) start(e umbel.Engine, id umbel.WorkflowID, rows []umbel.StagedRow, types ...umbel.TypePolicy) umbel.RunID {
	s.t.Helper()
	r, err := e.Commit(s.t.Context(), umbel.CommitRequest{
		Namespace: ns, WorkflowID: id, Rows: rows, Scheduled: int64(len(rows)), Types: types,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return r.RunID
}

// stage stages rows in calls of at most 10,000, and commits them.
func (s *stack) stage(e umbel.Engine, id umbel.WorkflowID, n int, change ...func(i int, r *umbel.StagedRow)) umbel.RunID {
	s.t.Helper()
	ctx, staging := s.t.Context(), umbel.NewRunID()
	for at := 0; at < n; at += 5000 {
		part := rows(min(5000, n-at), func(i int, r *umbel.StagedRow) {
			r.Input = text(strconv.Itoa(at + i))
			for _, c := range change {
				c(at+i, r)
			}
		})
		if _, err := e.Stage(ctx, umbel.StageRequest{
			Namespace: ns, WorkflowID: id, StagingID: staging, Offset: int64(at), Rows: part,
		}); err != nil {
			s.t.Fatal(err)
		}
	}
	r, err := e.Commit(ctx, umbel.CommitRequest{Namespace: ns, WorkflowID: id, StagingID: staging, Scheduled: int64(n)})
	if err != nil {
		s.t.Fatal(err)
	}
	return r.RunID
}

// pollRequest asks for up to n rows that are due now.
func pollRequest(n int) umbel.PollRequest {
	return umbel.PollRequest{Namespace: ns, TaskQueue: queue, Types: []string{task}, Worker: "hand", MaxRows: n}
}

// poll claims up to n rows that are due now.
func (s *stack) poll(e umbel.Engine, n int) []umbel.ClaimedRow {
	s.t.Helper()
	return s.pollFor(e, pollRequest(n))
}

func (s *stack) pollFor(e umbel.Engine, r umbel.PollRequest) []umbel.ClaimedRow {
	s.t.Helper()
	reply, err := e.Poll(s.t.Context(), r)
	if err != nil {
		s.t.Fatal(err)
	}
	return reply.Rows
}

// claim polls until it holds n rows.
func (s *stack) claim(e umbel.Engine, n int) []umbel.ClaimedRow {
	s.t.Helper()
	var out []umbel.ClaimedRow
	deadline := time.Now().Add(time.Minute)
	for len(out) < n {
		r := pollRequest(min(n-len(out), umbel.MaxPollRows))
		r.Wait = time.Second
		out = append(out, s.pollFor(e, r)...)
		if time.Now().After(deadline) {
			s.t.Fatalf("claimed %d of %d rows in a minute", len(out), n)
		}
	}
	return out
}

// done is the report of a row that completed with its input.
func done(r umbel.ClaimedRow) umbel.ReportItem {
	return umbel.ReportItem{Token: r.Token, Outcome: umbel.OutcomeCompleted, Result: r.Input}
}

// failed is the report of an attempt that failed.
func failed(r umbel.ClaimedRow) umbel.ReportItem {
	return umbel.ReportItem{
		Token: r.Token, Outcome: umbel.OutcomeFailed, Failure: &umbel.Failure{Type: "test", Message: "failed by hand"},
	}
}

// released is the report of a row that is given back.
func released(r umbel.ClaimedRow) umbel.ReportItem {
	return umbel.ReportItem{Token: r.Token, Outcome: umbel.OutcomeReleased}
}

// report reports items and returns their verdicts.
func (s *stack) report(e umbel.Engine, items ...umbel.ReportItem) []umbel.Verdict {
	s.t.Helper()
	r, err := e.Report(s.t.Context(), umbel.ReportRequest{Namespace: ns, Worker: "hand", Items: items})
	if err != nil {
		s.t.Fatal(err)
	}
	return r.Verdicts
}

// finish reports all rows as completed, and wants each recorded.
func (s *stack) finish(e umbel.Engine, held []umbel.ClaimedRow) {
	s.t.Helper()
	for len(held) > 0 {
		n := min(len(held), umbel.MaxReportItems)
		items := make([]umbel.ReportItem, n)
		for i, r := range held[:n] {
			items[i] = done(r)
		}
		for i, v := range s.report(e, items...) {
			if v.Code != umbel.Recorded {
				s.t.Fatalf("%s: verdict %d (attempt %d, %v), want recorded", held[i].DispatchKey(), v.Code, v.Attempt, v.Err)
			}
		}
		held = held[n:]
	}
}

// verdict reports one item and wants its verdict.
func (s *stack) verdict(e umbel.Engine, it umbel.ReportItem, want umbel.VerdictCode) umbel.Verdict {
	s.t.Helper()
	v := s.report(e, it)[0]
	if v.Code != want {
		s.t.Fatalf("verdict %d (attempt %d, %v), want %d", v.Code, v.Attempt, v.Err, want)
	}
	return v
}

// describe returns how a run stands.
func (s *stack) describe(e umbel.Engine, id umbel.WorkflowID) umbel.DescribeReply {
	s.t.Helper()
	d, err := e.Describe(s.t.Context(), umbel.DescribeRequest{Namespace: ns, WorkflowID: id})
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

// counts wants the counts of a run.
func (s *stack) counts(e umbel.Engine, id umbel.WorkflowID, want umbel.Counts) {
	s.t.Helper()
	if got := s.describe(e, id).Counts; got != want {
		s.t.Fatalf("counts of %q are %+v, want %+v", id, got, want)
	}
}

// cancel cancels a run, or rows of it, and returns how many rows that hit.
func (s *stack) cancel(e umbel.Engine, id umbel.WorkflowID, ordinals ...int64) int64 {
	s.t.Helper()
	r, err := e.Cancel(s.t.Context(), umbel.CancelRequest{Namespace: ns, WorkflowID: id, Reason: "test", Ordinals: ordinals})
	if err != nil {
		s.t.Fatal(err)
	}
	return r.Cancelled
}
