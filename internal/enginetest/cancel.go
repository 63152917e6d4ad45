package enginetest

import "github.com/umbelhq/umbel"

// cancel: of rows, of the run, and again.
func cancel(s *suite) {
	run := s.start("w", rows(0, 5))
	held := s.claim(2)
	s.finish(held[0])
	ask := umbel.CancelRequest{Namespace: ns, WorkflowID: "w", RunID: run, Reason: "for ü", Ordinals: []int64{0, 1, 4}}
	for _, want := range []int64{2, 0} {
		r, err := s.e.Cancel(s.Context(), ask)
		s.ok(err)
		s.equal("rows", r, umbel.CancelReply{RunID: run, Cancelled: want})
	}
	ask.Ordinals, ask.RunID = nil, ""
	for _, want := range []int64{2, 0} {
		r, err := s.e.Cancel(s.Context(), ask)
		s.ok(err)
		s.equal("run", r, umbel.CancelReply{RunID: run, Cancelled: want})
	}
	s.counts(umbel.Counts{Scheduled: 5, Completed: 1, Cancelled: 4})
	h, err := s.e.History(s.Context(), umbel.HistoryRequest{Namespace: ns, WorkflowID: "w"})
	s.ok(err)
	if e := lastOf(h.Events, umbel.CancelRequested); e.Reason != "for ü" {
		s.Errorf("the reason became %q", e.Reason)
	}
}
