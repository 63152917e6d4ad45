package enginetest

import (
	"time"

	"github.com/umbelhq/umbel"
)

// describe: status, counts, types and times of a run, by its workflow or by itself.
func describe(s *suite) {
	all := rows(0, 6)
	all[5].Type = "another"
	run := s.start("w", all, once())
	held := s.claim(4)
	s.finish(held[0])
	s.report([]umbel.ReportItem{failed(held[1], &umbel.Failure{Type: "T"})}, umbel.Recorded)
	_, err := s.e.Cancel(s.Context(), umbel.CancelRequest{Namespace: ns, WorkflowID: "w", Ordinals: []int64{2}})
	s.ok(err)
	for _, id := range []umbel.RunID{"", run} {
		d, err := alike(s, "describe", umbel.Engine.Describe, umbel.DescribeRequest{Namespace: ns, WorkflowID: "w", RunID: id})
		s.ok(err)
		if d.StartedAt.IsZero() || !d.ClosedAt.IsZero() || len(d.Types) != 2 {
			s.Errorf("%+v", d)
		}
		s.equal("run", d.RunInfo, umbel.RunInfo{
			WorkflowID: "w", RunID: run, Status: umbel.StatusRunning, Types: d.Types, StartedAt: d.StartedAt,
			Counts: umbel.Counts{Scheduled: 6, Pending: 2, Claimed: 1, Completed: 1, Failed: 1, Cancelled: 1},
		})
	}
	_, err = s.e.Cancel(s.Context(), umbel.CancelRequest{Namespace: ns, WorkflowID: "w"})
	s.ok(err)
	d, err := alike(s, "closed", umbel.Engine.Describe, umbel.DescribeRequest{Namespace: ns, WorkflowID: "w"})
	s.ok(err)
	if d.ClosedAt.Before(d.StartedAt) || d.Status != umbel.StatusCancelled {
		s.Errorf("closed: %+v", d)
	}
}

// describeWaits: a wait ends with the close, or when its time is up, with how things stand.
func describeWaits(s *suite) {
	s.start("w", rows(0, 1))
	held := s.claim(1)
	r := umbel.DescribeRequest{Namespace: ns, WorkflowID: "w", Wait: 100 * time.Millisecond}
	d, err := s.e.Describe(s.Context(), r)
	s.ok(err)
	s.equal("when the time is up", d.Counts, umbel.Counts{Scheduled: 1, Claimed: 1})
	closed := make(chan umbel.DescribeReply, 1)
	go func() {
		defer close(closed)
		r.Wait = umbel.MaxPollWait
		if d, err := s.e.Describe(s.Context(), r); err != nil {
			s.Error(err)
		} else {
			closed <- d
		}
	}()
	s.finish(held...)
	if d := <-closed; d.Status != umbel.StatusCompleted {
		s.Errorf("at the close: %+v", d)
	}
}
