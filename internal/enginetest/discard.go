package enginetest

import "github.com/umbelhq/umbel"

// discard: what was staged is forgotten; to discard nothing, or twice, is no error; a run stays.
func discard(s *suite) {
	id := umbel.NewRunID()
	_, err := s.e.Stage(s.Context(), umbel.StageRequest{Namespace: ns, WorkflowID: "w", StagingID: id, Rows: rows(0, 5)})
	s.ok(err)
	for range 2 {
		s.ok(s.e.Discard(s.Context(), umbel.DiscardRequest{Namespace: ns, WorkflowID: "w", StagingID: id}))
	}
	_, err = s.e.Commit(s.Context(), umbel.CommitRequest{Namespace: ns, WorkflowID: "w", StagingID: id, Scheduled: 5})
	s.is("commit of what was discarded", err, umbel.ErrStagingLost)
	run := s.start("w", rows(0, 1))
	s.ok(s.e.Discard(s.Context(), umbel.DiscardRequest{Namespace: ns, WorkflowID: "w", StagingID: run}))
	s.counts(umbel.Counts{Scheduled: 1, Pending: 1})
}
