package stack

import (
	"errors"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
)

// tool returns an Admin of an engine.
func (s *stack) tool(e umbel.Engine) *client.Admin {
	s.t.Helper()
	a, err := client.NewAdmin(e, client.Config{})
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

// all reads a sequence that has no error.
func all[T any](s *stack, seq iter.Seq2[T, error]) []T {
	s.t.Helper()
	var got []T
	for v, err := range seq {
		if err != nil {
			s.t.Fatal(err)
		}
		got = append(got, v)
	}
	return got
}

// halfDone starts ten rows: 0 and 3 fail, 1 and 7 complete, the others wait for an hour.
func (s *stack) halfDone(e umbel.Engine) {
	s.t.Helper()
	s.start(e, "w", rows(10, func(i int, r *umbel.StagedRow) {
		if !slices.Contains([]int{0, 1, 3, 7}, i) {
			r.Delay = time.Hour
		}
	}), retry(umbel.RetryPolicy{MaxAttempts: 1})...)
	for _, r := range s.claim(e, 4) {
		it, want := done(r), umbel.Recorded
		if r.Ordinal == 0 || r.Ordinal == 3 {
			it = failed(r)
		}
		s.verdict(e, it, want)
	}
}

func TestAdminReadsAnOpenRun(t *testing.T) {
	onEach(t, func(s *stack) {
		e := s.open()
		s.halfDone(e)
		a, ctx := s.tool(e), s.t.Context()
		for _, c := range []struct {
			q    client.ResultsQuery
			want []int64
		}{
			{client.ResultsQuery{Ordered: true}, []int64{0, 1}},
			{client.ResultsQuery{Status: umbel.StatusFailed}, []int64{0, 3}},
			{client.ResultsQuery{Status: umbel.StatusCompleted}, []int64{1, 7}},
			{client.ResultsQuery{Status: umbel.StatusCancelled}, nil},
			{client.ResultsQuery{WithInputs: true}, []int64{0, 1, 3, 7}},
		} {
			var got []int64
			for _, r := range all(s, a.Results(ctx, "w", c.q)) {
				if got = append(got, r.Ordinal); (len(r.Input.Data) > 0) != c.q.WithInputs {
					s.t.Errorf("%+v: input %q", c.q, r.Input.Data)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, c.want) {
				s.t.Errorf("%+v: %v", c.q, got)
			}
		}
		if evs := all(s, a.History(ctx, "w", client.HistoryQuery{})); len(evs) != 25 || evs[24].Seq != 25 { // 1 + 2·10 + 4
			s.t.Errorf("%d events", len(evs))
		}
		evs := all(s, a.History(ctx, "w", client.HistoryQuery{Ordinal: new(int64(3))}))
		if len(evs) != 3 || evs[2].Type != umbel.ActivityFailed {
			s.t.Errorf("of ordinal 3: %+v", evs)
		}
		if _, err := a.Show(ctx, "w", "none"); !errors.Is(err, umbel.ErrNotFound) {
			s.t.Error(err)
		}
		if n, err := a.Cancel(ctx, "w", "", "enough", 1, 2); err != nil || n != 1 {
			s.t.Error(n, err)
		}
		info, err := a.Show(ctx, "w", "")
		if want := (umbel.Counts{Scheduled: 10, Pending: 5, Completed: 2, Failed: 2, Cancelled: 1}); err != nil || info.Counts != want {
			s.t.Errorf("%+v, %v", info, err)
		}
	})
}

// A watch sees changes within half a second and the close at once; what follows a history sees its end.
func TestAdminFollows(t *testing.T) {
	onMini(t, func(s *stack) {
		e := s.open()
		s.halfDone(e)
		a, ctx, began := s.tool(e), s.t.Context(), time.Now()
		change := 10*time.Second + 130*time.Millisecond
		closes := 30*time.Second + 70*time.Millisecond
		cancel := func(ordinals ...int64) {
			if _, err := a.Cancel(ctx, "w", "", "", ordinals...); err != nil {
				s.t.Error(err)
			}
		}
		time.AfterFunc(change, func() { cancel(9) })
		time.AfterFunc(closes, func() { cancel() })

		history := make(chan []umbel.Event)
		go func() {
			var evs []umbel.Event
			for ev, err := range a.History(ctx, "w", client.HistoryQuery{Follow: true, From: 20}) {
				if err != nil {
					s.t.Error(err)
				}
				evs = append(evs, ev)
			}
			history <- evs
		}()
		failed := make(chan []int64)
		go func() {
			var got []int64
			for r, err := range client.AttachRaw(s.connect(e), "w").Results(ctx, client.Ordered(), client.OnlyFailed()) {
				if err != nil {
					s.t.Error(err)
				}
				got = append(got, r.Ordinal)
			}
			failed <- got
		}()
		var seen []int64
		for info, err := range a.Watch(ctx, "w", "") {
			if err != nil {
				s.t.Fatal(err)
			}
			at := []time.Duration{0, change, closes}[len(seen)]
			late := time.Since(began) - at
			if seen = append(seen, info.Counts.Cancelled); late > 500*time.Millisecond || at == closes && late > 50*time.Millisecond {
				s.t.Errorf("%+v came %v late", info.Counts, late)
			}
		}
		if !slices.Equal(seen, []int64{0, 1, 6}) {
			s.t.Error(seen)
		}
		if evs := <-history; evs[0].Seq != 20 || evs[len(evs)-1].Type != umbel.WorkflowClosed {
			s.t.Errorf("%d events, the last %+v", len(evs), evs[len(evs)-1])
		}
		if got := <-failed; !slices.Equal(got, []int64{0, 3}) {
			s.t.Errorf("failed: %v", got)
		}
	})
}

func TestAdminLists(t *testing.T) {
	onEach(t, func(s *stack) {
		e := s.open()
		a, ctx := s.tool(e), s.t.Context()
		for i, id := range []umbel.WorkflowID{"a/1", "b/1", "a/2", "b/2"} {
			s.start(e, id, rows(i%2)) // those of a are empty, and closed
			s.later()
		}
		for _, c := range []struct {
			f    client.ListFilter
			want []umbel.WorkflowID
		}{
			{client.ListFilter{}, []umbel.WorkflowID{"b/2", "a/2", "b/1", "a/1"}},
			{client.ListFilter{Limit: 3}, []umbel.WorkflowID{"b/2", "a/2", "b/1"}},
			{client.ListFilter{Status: umbel.StatusRunning}, []umbel.WorkflowID{"b/2", "b/1"}},
			{client.ListFilter{Activity: task, Limit: 1}, []umbel.WorkflowID{"b/2"}},
			{client.ListFilter{Prefix: "a/"}, []umbel.WorkflowID{"a/2", "a/1"}},
			{client.ListFilter{Prefix: "c"}, nil},
		} {
			if got := ids(all(s, a.List(ctx, c.f))); !slices.Equal(got, c.want) {
				s.t.Errorf("%+v: %v", c.f, got)
			}
		}
	})
}
