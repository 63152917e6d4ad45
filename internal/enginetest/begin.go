package enginetest

import "github.com/umbelhq/umbel"

// begin: a workflow that does not exist gets a staging area, one that does is named; nothing is written.
func begin(s *suite) {
	ask := umbel.BeginRequest{Namespace: ns, WorkflowID: "w"}
	a, err := s.e.Begin(s.Context(), ask)
	s.ok(err)
	b, err := s.e.Begin(s.Context(), ask)
	s.ok(err)
	if a.Exists || a.RunID != "" || a.StagingID == "" || a.StagingID == b.StagingID {
		s.Errorf("of a workflow that does not exist: %+v, then %+v", a, b)
	}
	digest := umbel.Digest{1, 2, 31: 0xff}
	c, err := s.e.Commit(s.Context(), umbel.CommitRequest{Namespace: ns, WorkflowID: "w", Rows: rows(0, 1), Scheduled: 1, Digest: digest})
	s.ok(err)
	got, err := alike(s, "begin of one that exists", umbel.Engine.Begin, ask)
	s.ok(err)
	s.equal("begin of one that exists", got, umbel.BeginReply{Exists: true, RunID: c.RunID, Digest: digest})
}
