package stack

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
)

// Promise 2: starts of one workflow ID race, from clients of two servers: one run. Other inputs are refused, by the
// run's name.
func TestPromise2RacingStarts(t *testing.T) {
	onEach(t, func(s *stack) {
		a, b := s.open(), s.open()
		for _, n := range []int{1, 100, 12_000} { // the last is staged
			id := umbel.WorkflowID("w" + string(rune('a'+n%26)))
			var mu sync.Mutex
			var fresh int
			ids := map[umbel.RunID]bool{}
			var wg sync.WaitGroup
			for i := range 6 {
				e := umbel.Engine(a)
				if i%2 == 1 {
					e = b
				}
				wg.Go(func() {
					run, err := client.FanOut(s.t.Context(), s.connect(e), double, slices.Values(numbers(n)), client.WorkflowID(id))
					if err != nil {
						s.t.Error(err)
						return
					}
					mu.Lock()
					defer mu.Unlock()
					ids[run.ID()] = true
					if !run.Attached() {
						fresh++
					}
				})
			}
			wg.Wait()
			if s.t.Failed() {
				return
			}
			if len(ids) != 1 || fresh != 1 {
				s.t.Fatalf("N = %d: %d runs, %d of the starts opened one", n, len(ids), fresh)
			}
			s.counts(a, id, umbel.Counts{Scheduled: int64(n), Pending: int64(n)})
			_, err := client.FanOut(s.t.Context(), s.connect(b), double, slices.Values(numbers(n+1)), client.WorkflowID(id))
			got, ok := errors.AsType[*umbel.Error](err)
			if !ok || got.Code != umbel.CodeAlreadyExists || !ids[got.RunID] {
				s.t.Errorf("other inputs: %v", err)
			}
			s.counts(a, id, umbel.Counts{Scheduled: int64(n), Pending: int64(n)})
			events := s.history(a, id)
			if len(events) != 1+2*n {
				s.t.Errorf("%d events of %d rows", len(events), n)
			}
			s.cancel(a, id)
		}
	})
}

// Promise 2: Existing attaches without comparing, Reject refuses, and other options are other inputs.
func TestPromise2OnExisting(t *testing.T) {
	onEach(t, func(s *stack) {
		e := s.open()
		c := s.connect(e)
		begin := func(n int, opts ...client.StartOption) (*client.Run[int], error) {
			return client.FanOut(s.t.Context(), c, double, slices.Values(numbers(n)), append(opts, client.WorkflowID("w"))...)
		}
		first, err := begin(3)
		if err != nil {
			s.t.Fatal(err)
		}
		for name, opts := range map[string][]client.StartOption{"same": nil, "existing": {client.Existing}} {
			again, err := begin(3, opts...)
			if err != nil || again.ID() != first.ID() || !again.Attached() {
				s.t.Errorf("%s: %v", name, err)
			}
		}
		if again, err := begin(7, client.Existing); err != nil || again.ID() != first.ID() {
			s.t.Errorf("existing, other inputs: %v", err)
		}
		for name, opts := range map[string][]client.StartOption{
			"reject": {client.Reject}, "queue": {client.TaskQueue("q")}, "node": {client.Node("n")},
			"retry": {client.Retry(umbel.RetryPolicy{MaxAttempts: 3})},
		} {
			_, err := begin(3, opts...)
			got, ok := errors.AsType[*umbel.Error](err)
			if !ok || got.Code != umbel.CodeAlreadyExists || got.RunID != first.ID() {
				s.t.Errorf("%s: %v", name, err)
			}
		}
		s.counts(e, "w", umbel.Counts{Scheduled: 3, Pending: 3})
	})
}

// Promise 2: a commit whose reply was lost is sent again: the same run, not an attached one's refusal.
func TestPromise2CommitAgain(t *testing.T) {
	onEach(t, func(s *stack) {
		e := s.open()
		for _, staged := range []bool{false, true} {
			id := umbel.WorkflowID(map[bool]string{false: "small", true: "staged"}[staged])
			r := umbel.CommitRequest{Namespace: ns, WorkflowID: id, StagingID: umbel.NewRunID(), Scheduled: 5, Digest: umbel.Digest{1}}
			if staged {
				if _, err := e.Stage(s.t.Context(), umbel.StageRequest{Namespace: ns, WorkflowID: id, StagingID: r.StagingID, Rows: rows(5)}); err != nil {
					s.t.Fatal(err)
				}
			} else {
				r.Rows = rows(5)
			}
			for range 3 {
				got, err := e.Commit(s.t.Context(), r)
				if err != nil || got.RunID != r.StagingID || got.Scheduled != 5 || got.Attached {
					s.t.Fatalf("%s: %+v %v", id, got, err)
				}
			}
			s.counts(e, id, umbel.Counts{Scheduled: 5, Pending: 5})
			if n := len(s.history(e, id)); n != 11 {
				s.t.Errorf("%s: %d events", id, n)
			}
		}
	})
}

// Promise 10, cases 39 and 25: a run of no rows closes at once, and gathers an empty list; a run of one a list of one.
func TestCase25AndEmptyRun(t *testing.T) {
	onEach(t, func(s *stack) {
		e := s.open()
		run, err := client.FanOut(s.t.Context(), s.connect(e), double, slices.Values(numbers(0)), client.WorkflowID("none"))
		if err != nil {
			s.t.Fatal(err)
		}
		if got, err := run.Gather(s.t.Context()); err != nil || got == nil || len(got) != 0 {
			s.t.Errorf("%v %v", got, err)
		}
		if d := s.describe(e, "none"); d.Status != umbel.StatusCompleted {
			s.t.Errorf("%+v", d)
		}
		events := s.history(e, "none")
		if of(events, umbel.FanOutDecided) != 1 || of(events, umbel.WorkflowClosed) != 1 {
			s.t.Errorf("%+v", events)
		}
		run, err = client.FanOut(s.t.Context(), s.connect(e), double, slices.Values([]int{21}), client.WorkflowID("one"))
		if err != nil {
			s.t.Fatal(err)
		}
		held := s.pollFor(e, umbel.PollRequest{Namespace: ns, TaskQueue: queue, Types: []string{"double"}, Worker: "hand", MaxRows: 1})
		s.finish(e, held)
		if got, err := run.Gather(s.t.Context()); err != nil || len(got) != 1 || got[0] != 21 {
			s.t.Errorf("%v %v", got, err)
		}
	})
}
