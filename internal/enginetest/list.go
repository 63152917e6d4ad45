package enginetest

import (
	"slices"
	"strconv"

	"github.com/umbelhq/umbel"
)

// list: filters, pages, and runs as Describe has them.
func list(s *suite) {
	for i := range 7 {
		all := rows(0, 2)
		all[0].Type = "type " + strconv.Itoa(i%2)
		s.start(umbel.WorkflowID("w "+strconv.Itoa(i)), all)
	}
	_, err := s.e.Cancel(s.Context(), umbel.CancelRequest{Namespace: ns, WorkflowID: "w 3"})
	s.ok(err)
	for _, c := range []struct {
		r umbel.ListRequest
		n int
	}{
		{umbel.ListRequest{}, 7}, {umbel.ListRequest{Status: umbel.StatusRunning}, 6}, {umbel.ListRequest{Status: umbel.StatusCancelled}, 1},
		{umbel.ListRequest{Type: "type 0"}, 4}, {umbel.ListRequest{Prefix: "w 5"}, 1}, {umbel.ListRequest{Prefix: "x"}, 0},
		{umbel.ListRequest{Limit: 2}, 7},
	} {
		c.r.Namespace = ns
		var all []umbel.RunInfo
		for pages := 0; ; pages++ {
			p, err := alike(s, "list", umbel.Engine.List, c.r)
			s.ok(err)
			all = append(all, p.Runs...)
			if c.r.Limit > 0 && len(p.Runs) > c.r.Limit || pages > 100 {
				s.Fatalf("page %d has %d runs", pages, len(p.Runs))
			}
			if p.Done {
				break
			}
			c.r.Cursor = p.Next
		}
		if len(all) != c.n || !slices.IsSortedFunc(all, func(a, b umbel.RunInfo) int { return b.StartedAt.Compare(a.StartedAt) }) {
			s.Errorf("%+v lists %d runs, want %d: %+v", c.r, len(all), c.n, all)
		}
		for _, run := range all {
			d, err := s.e.Describe(s.Context(), umbel.DescribeRequest{Namespace: ns, WorkflowID: run.WorkflowID})
			s.ok(err)
			s.equal("as described", run, d.RunInfo)
		}
	}
	p, err := s.e.List(s.Context(), umbel.ListRequest{Namespace: "other"})
	s.ok(err)
	if len(p.Runs) > 0 || !p.Done {
		s.Errorf("of another namespace: %+v", p)
	}
}
