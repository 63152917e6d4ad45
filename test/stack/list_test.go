package stack

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/outbox"
)

// list reads all pages of a list, each of which must advance.
func (s *stack) list(e umbel.Engine, r umbel.ListRequest) (all []umbel.RunInfo, pages int) {
	s.t.Helper()
	r.Namespace = cmp.Or(r.Namespace, ns)
	for {
		p, err := e.List(s.t.Context(), r)
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, p.Runs...)
		pages++
		if p.Done {
			return all, pages
		}
		if p.Next == "" || p.Next == r.Cursor {
			s.t.Fatalf("page %d does not advance: %d runs, cursor %q", pages, len(p.Runs), p.Next)
		}
		r.Cursor = p.Next
	}
}

// ids are the workflows of runs.
func ids(runs []umbel.RunInfo) []umbel.WorkflowID {
	out := []umbel.WorkflowID{}
	for _, r := range runs {
		out = append(out, r.WorkflowID)
	}
	return out
}

// listed wants these workflows, in this order.
func (s *stack) listed(e umbel.Engine, r umbel.ListRequest, want ...umbel.WorkflowID) {
	s.t.Helper()
	all, _ := s.list(e, r)
	if got := ids(all); !slices.Equal(got, want) {
		s.t.Errorf("%+v lists %q, want %q", r, got, want)
	}
}

// later waits for the next millisecond of Redis's clock, so that what starts now starts after what was before.
func (s *stack) later() {
	s.t.Helper()
	if s.virtual() {
		time.Sleep(time.Millisecond)
		return
	}
	store, err := outbox.NewRedis(s.t.Context(), s.redis.Client, outbox.Options{Prefix: s.redis.Prefix})
	if err != nil {
		s.t.Fatal(err)
	}
	now := func() int64 {
		at, err := store.Now(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		return at.UnixMilli()
	}
	before := now() // nodes of a cluster on one machine share its clock
	s.eventually("the next millisecond", func() bool { return now() > before })
}

// A run is in the list of its status from its start to its close, whatever ends it, and says there what Describe says.
func TestListByStatus(t *testing.T) {
	onEach(t, func(s *stack) {
		e := s.open()
		if p, err := e.List(s.t.Context(), umbel.ListRequest{Namespace: ns}); err != nil || !p.Done || len(p.Runs) > 0 {
			s.t.Fatalf("before all: %+v, %v", p, err)
		}
		begin := func(id umbel.WorkflowID, n int) []umbel.ClaimedRow {
			s.later()
			s.start(e, id, rows(n), retry(umbel.RetryPolicy{MaxAttempts: 1})...)
			return s.claim(e, n)
		}
		all := []umbel.WorkflowID{"empty", "rows cancelled", "cancelled", "failed", "completed", "claimed"}
		begin("claimed", 2)
		held := begin("completed", 3)
		s.finish(e, held[:2])
		s.listed(e, umbel.ListRequest{Status: umbel.StatusRunning}, "completed", "claimed")
		s.finish(e, held[2:])
		held = begin("failed", 2)
		s.verdict(e, failed(held[0]), umbel.Recorded)
		s.finish(e, held[1:])
		begin("cancelled", 2)
		s.cancel(e, "cancelled")
		begin("rows cancelled", 2)
		s.cancel(e, "rows cancelled", 0, 1)
		s.later()
		s.start(e, "empty", nil)
		s.later()
		s.start(e, "waiting", rows(4, func(i int, r *umbel.StagedRow) { r.TaskQueue, r.Type = "q"+strconv.Itoa(i%2), "t"+strconv.Itoa(i%3) }))

		s.listed(e, umbel.ListRequest{}, append([]umbel.WorkflowID{"waiting"}, all...)...)
		s.listed(e, umbel.ListRequest{Status: umbel.StatusRunning}, "waiting", "claimed")
		s.listed(e, umbel.ListRequest{Status: umbel.StatusCompleted}, "empty", "completed")
		s.listed(e, umbel.ListRequest{Status: umbel.StatusFailed}, "failed")
		s.listed(e, umbel.ListRequest{Status: umbel.StatusCancelled}, "rows cancelled", "cancelled")
		s.listed(e, umbel.ListRequest{Namespace: "other"})
		runs, _ := s.list(e, umbel.ListRequest{})
		for _, r := range runs {
			d := s.describe(e, r.WorkflowID).RunInfo
			if !slices.Equal(r.Types, d.Types) || r.StartedAt.IsZero() {
				s.t.Errorf("%q has the types %q, started at %v; described as %+v", r.WorkflowID, r.Types, r.StartedAt, d)
			}
			r.Types, d.Types = nil, nil
			if !sameRun(r, d) {
				s.t.Errorf("listed as %+v\ndescribed as %+v", r, d)
			}
		}
	})
}

// sameRun compares runs but for their types.
func sameRun(a, b umbel.RunInfo) bool {
	return a.WorkflowID == b.WorkflowID && a.RunID == b.RunID && a.Status == b.Status && a.Counts == b.Counts &&
		a.StartedAt.Equal(b.StartedAt) && a.ClosedAt.Equal(b.ClosedAt)
}

// Filters go together, and pages of any length hold the same runs in the same order.
func TestListFiltersAndPages(t *testing.T) {
	onEach(t, func(s *stack) {
		e := s.open()
		const n = 60
		var names []umbel.WorkflowID
		for i := range n {
			id := umbel.WorkflowID([]string{"a:", "a%", "ä"}[i%3] + strconv.Itoa(i))
			names = append(names, id)
			s.start(e, id, rows(1, func(_ int, r *umbel.StagedRow) { r.Type = "t" + strconv.Itoa(i%2) }))
			if i%5 == 0 {
				s.cancel(e, id)
			}
			if i%4 == 0 {
				s.later() // some start in one millisecond, some do not
			}
		}
		all, _ := s.list(e, umbel.ListRequest{})
		if got := ids(all); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(names))) {
			s.t.Fatalf("%d runs are listed, %d started: %q", len(got), n, got)
		}
		if !slices.IsSortedFunc(all, latestFirst) {
			s.t.Errorf("the order is %+v", all)
		}
		for _, r := range []umbel.ListRequest{
			{},
			{Status: umbel.StatusCancelled},
			{Type: "t1"},
			{Prefix: "a"},
			{Prefix: "a:"},
			{Prefix: "a%"},
			{Prefix: "ä", Type: "t0", Status: umbel.StatusRunning},
			{Type: "none"},
			{Prefix: "a:0 and more"},
		} {
			var want []umbel.WorkflowID
			for _, run := range all {
				if (r.Status == "" || run.Status == r.Status) && (r.Type == "" || slices.Contains(run.Types, r.Type)) &&
					strings.HasPrefix(string(run.WorkflowID), r.Prefix) {
					want = append(want, run.WorkflowID)
				}
			}
			for _, limit := range []int{0, 1, 7, len(want), n - 1, n, n + 1} {
				r.Limit = limit
				s.listed(e, r, want...)
			}
		}
		if p, err := e.List(s.t.Context(), umbel.ListRequest{Namespace: ns, Limit: n}); err != nil || len(p.Runs) != n || !p.Done {
			s.t.Errorf("a page as long as the list: %d runs, done %t, %v", len(p.Runs), p.Done, err)
		}
	})
}

func latestFirst(a, b umbel.RunInfo) int {
	return cmp.Or(b.StartedAt.Compare(a.StartedAt), cmp.Compare(b.RunID, a.RunID))
}

// Runs that start or close between two pages move none of the others: each is there once.
func TestListWhileRunsStartAndClose(t *testing.T) {
	onEach(t, func(s *stack) {
		e := s.open()
		var still []umbel.WorkflowID
		for i := range 20 {
			id := umbel.WorkflowID("w" + strconv.Itoa(i))
			s.start(e, id, rows(1))
			if i%2 == 0 {
				still = append(still, id)
			}
		}
		r := umbel.ListRequest{Namespace: ns, Status: umbel.StatusRunning, Limit: 3}
		var got []umbel.WorkflowID
		for i := 0; ; i++ {
			p, err := e.List(s.t.Context(), r)
			if err != nil {
				s.t.Fatal(err)
			}
			got = append(got, ids(p.Runs)...)
			if p.Done {
				break
			}
			r.Cursor = p.Next
			s.start(e, umbel.WorkflowID("new"+strconv.Itoa(i)), rows(1))
			// the run that the cursor names may close, as others may
			for _, id := range []umbel.WorkflowID{got[len(got)-1], umbel.WorkflowID("w" + strconv.Itoa(2*i+1))} {
				if !slices.Contains(still, id) {
					s.cancel(e, id)
				}
			}
		}
		for _, id := range still {
			if n := len(slices.DeleteFunc(slices.Clone(got), func(x umbel.WorkflowID) bool { return x != id })); n != 1 {
				s.t.Errorf("%q was on %d pages: %q", id, n, got)
			}
		}
		if sorted := slices.Sorted(slices.Values(got)); len(slices.Compact(sorted)) != len(got) {
			s.t.Errorf("a run came twice: %q", got)
		}
	})
}

// What is read while others write: every list has runs of its status only, and no run is missed that stays.
func TestListUnderLoad(t *testing.T) {
	t.Parallel()
	onReal(t, func(s *stack) {
		e := s.open()
		s.start(e, "stays", rows(1))
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				for j := range 25 {
					id := umbel.WorkflowID("w" + strconv.Itoa(i) + "-" + strconv.Itoa(j))
					s.start(e, id, rows(1, func(_ int, r *umbel.StagedRow) { r.Delay = time.Hour }))
					s.cancel(e, id)
				}
			})
		}
		for range 25 {
			for _, status := range []umbel.Status{umbel.StatusRunning, umbel.StatusCancelled} {
				all, _ := s.list(e, umbel.ListRequest{Status: status, Limit: 10})
				for _, r := range all {
					if r.Status != status {
						s.t.Errorf("%q is %s in the list of %s", r.WorkflowID, r.Status, status)
					}
				}
				if n := slices.Index(ids(all), "stays"); (n >= 0) != (status == umbel.StatusRunning) {
					s.t.Errorf("the run that stays is number %d of those %s", n, status)
				}
			}
		}
		wg.Wait()
		s.finish(e, s.claim(e, 1))
		s.listed(e, umbel.ListRequest{Status: umbel.StatusCompleted}, "stays")
	})
}
