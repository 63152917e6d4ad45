package enginetest

import (
	"time"

	"github.com/umbelhq/umbel"
)

// commit: the run exists at once, a repeat attaches to it, N = 0 closes at once.
func commit(s *suite) {
	r := umbel.CommitRequest{Namespace: ns, WorkflowID: "w", Rows: rows(0, 3), Scheduled: 3}
	c, err := s.e.Commit(s.Context(), r)
	s.ok(err)
	if c.RunID == "" || c.Scheduled != 3 || c.Attached {
		s.Errorf("committed as %+v", c)
	}
	again, err := alike(s, "again", umbel.Engine.Commit, r)
	s.ok(err)
	s.equal("again", again, umbel.CommitReply{RunID: c.RunID, Scheduled: 3, Attached: true})
	s.counts(umbel.Counts{Scheduled: 3, Pending: 3})

	s.start("none", nil)
	d, err := alike(s, "without rows", umbel.Engine.Describe, umbel.DescribeRequest{Namespace: ns, WorkflowID: "none"})
	s.ok(err)
	if d.Status != umbel.StatusCompleted || d.ClosedAt.IsZero() {
		s.Errorf("without rows: %+v", d)
	}
}

// commitCarriesAll: each field of a row and of a policy arrives.
func commitCarriesAll(s *suite) {
	at := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	all := []umbel.StagedRow{
		{Type: "a", TaskQueue: "q", Node: "node {}", Key: "key ü", Input: umbel.Payload{ContentType: "x/y", Data: []byte("1")}},
		{Type: "b", Delay: time.Hour},
		{Type: "b", NotBefore: at},
	}
	s.start("w", all,
		umbel.TypePolicy{
			Type: "a", StartToClose: 90 * time.Second,
			Retry: umbel.RetryPolicy{Initial: 250 * time.Millisecond, Cap: 2 * time.Second, Factor: 4, Jitter: 1e-9, MaxAttempts: 2, NonRetryable: []string{"Never"}},
		})
	ask := umbel.PollRequest{Namespace: ns, TaskQueue: "q", Node: "node {}", Types: []string{"a"}, Worker: me, MaxRows: 5, Wait: 5 * time.Second}
	none := ask
	none.Node, none.Wait = "", 0
	p, err := s.e.Poll(s.Context(), none)
	s.ok(err)
	if len(p.Rows) > 0 {
		s.Errorf("a worker without the node was handed %+v", p.Rows)
	}
	p, err = s.e.Poll(s.Context(), ask)
	s.ok(err)
	if len(p.Rows) != 1 || p.Rows[0].StartToClose != 90*time.Second || p.Rows[0].Node != "node {}" || p.Rows[0].Key != "key ü" {
		s.Fatalf("claimed %+v", p.Rows)
	}
	s.report([]umbel.ReportItem{failed(p.Rows[0], &umbel.Failure{Type: "Some"})}, umbel.Retrying)
	h, err := alike(s, "history", umbel.Engine.History, umbel.HistoryRequest{Namespace: ns, WorkflowID: "w"})
	s.ok(err)
	last := lastOf(h.Events, umbel.ActivityAttemptFailed)
	if wait := last.NextVisible.Sub(last.At); wait < 240*time.Millisecond || wait > 260*time.Millisecond {
		s.Errorf("the next attempt is %v after the first", wait)
	}
	ask.Node = "node {}"
	p, err = s.e.Poll(s.Context(), ask)
	s.ok(err)
	if len(p.Rows) != 1 || p.Rows[0].Attempt != 2 {
		s.Fatalf("claimed %+v", p.Rows)
	}
	s.report([]umbel.ReportItem{failed(p.Rows[0], &umbel.Failure{Type: "Never"})}, umbel.Recorded)
	// what is kept back is not handed out, whichever way it was said
	p, err = s.e.Poll(s.Context(), umbel.PollRequest{Namespace: ns, TaskQueue: umbel.DefaultTaskQueue, Types: []string{"b"}, Worker: me, MaxRows: 5})
	s.ok(err)
	if len(p.Rows) > 0 {
		s.Errorf("claimed before their time: %+v", p.Rows)
	}
}

// commitOnExisting: each way to treat a workflow that exists.
func commitOnExisting(s *suite) {
	id := s.start("w", rows(0, 2))
	for _, c := range []struct {
		on   umbel.OnExisting
		n    int
		fine bool
	}{
		{umbel.SameInputs, 2, true}, {umbel.SameInputs, 3, false}, {umbel.Existing, 2, true}, {umbel.Existing, 3, true},
		{umbel.Reject, 2, false}, {umbel.Reject, 3, false},
	} {
		r := umbel.CommitRequest{Namespace: ns, WorkflowID: "w", Rows: rows(0, c.n), Scheduled: int64(c.n), OnExisting: c.on}
		got, err := alike(s, "commit", umbel.Engine.Commit, r)
		if c.fine {
			s.ok(err)
			s.equal("attached", got, umbel.CommitReply{RunID: id, Scheduled: 2, Attached: true})
			continue
		}
		if e := s.is("commit", err, umbel.ErrAlreadyExists); e.RunID != id || e.WorkflowID != "w" || !umbel.SafeToRetry(err) {
			s.Errorf("the error names run %q of %q", e.RunID, e.WorkflowID)
		}
	}
}
