package enginetest

import "github.com/umbelhq/umbel"

// stage: chunks are added in turn; those that are there are acknowledged again, and a commit makes them a run.
func stage(s *suite) {
	b, err := s.e.Begin(s.Context(), umbel.BeginRequest{Namespace: ns, WorkflowID: "w"})
	s.ok(err)
	send := func(at, n int) (umbel.StageReply, error) {
		return s.e.Stage(s.Context(), umbel.StageRequest{
			Namespace: ns, WorkflowID: "w", StagingID: b.StagingID, Offset: int64(at), Rows: rows(at, n),
		})
	}
	for _, c := range []struct{ at, n, next int }{{0, 100, 100}, {0, 100, 100}, {100, 200, 300}, {100, 200, 300}, {0, 100, 300}, {300, 0, 300}} {
		r, err := send(c.at, c.n)
		s.ok(err)
		s.equal("stage", r, umbel.StageReply{Next: int64(c.next)})
	}
	_, err = send(301, 1)
	s.is("a gap", err, umbel.ErrStagingLost)
	_, err = s.e.Describe(s.Context(), umbel.DescribeRequest{Namespace: ns, WorkflowID: "w"})
	s.is("before the commit", err, umbel.ErrNotFound)
	commit := umbel.CommitRequest{Namespace: ns, WorkflowID: "w", StagingID: b.StagingID, Rows: rows(300, 10), Scheduled: 310}
	c, err := s.e.Commit(s.Context(), commit)
	s.ok(err)
	again, err := s.e.Commit(s.Context(), commit)
	s.ok(err)
	if c.RunID != again.RunID || c.Scheduled != 310 || c.RunID == "" {
		s.Errorf("committed as %+v, then as %+v", c, again)
	}
	for i, r := range s.claim(310) {
		if r.Ordinal != int64(i) || string(r.Input.Data) != r.Key[1:] {
			s.Fatalf("row %d is %+v", i, r)
		}
	}
}

// stageLost: an area that is not there is lost, for a stage and for a commit.
func stageLost(s *suite) {
	id := umbel.NewRunID()
	_, err := s.e.Stage(s.Context(), umbel.StageRequest{Namespace: ns, WorkflowID: "w", StagingID: id, Offset: 5, Rows: rows(5, 1)})
	s.is("stage", err, umbel.ErrStagingLost)
	_, err = alike(s, "commit", umbel.Engine.Commit, umbel.CommitRequest{Namespace: ns, WorkflowID: "w", StagingID: id, Scheduled: 5})
	s.is("commit", err, umbel.ErrStagingLost)
}
