package outboxtest

import (
	"slices"
	"time"

	"github.com/umbelhq/umbel/outbox"
)

func rearmCases() []testCase {
	return []testCase{
		{"RearmStale", rearmStale},
		{"RearmStaleByAge", rearmStaleByAge},
		{"RearmStaleLimit", rearmStaleLimit},
		{"RearmStaleKeepsAttempt", rearmStaleKeepsAttempt},
		{"RearmStaleWithoutClaimedAt", rearmStaleWithoutClaimedAt},
		{"Rearm", rearm},
		{"RearmMoves", rearmMoves},
		{"RearmAbsentAndResolved", rearmAbsentAndResolved},
		{"RearmMany", rearmMany},
	}
}

// later waits until the store's clock is a whole millisecond past what it shows, and returns that instant.
func (s *suite) later() time.Time {
	at := outbox.CeilMilli(s.now().Add(2 * time.Millisecond))
	s.WaitUntil(s.T, at)
	return at
}

func (s *suite) rearmStale(olderThan time.Time, limit int, visible time.Time) []outbox.Row {
	s.Helper()
	back, err := s.Store.RearmStale(s.Context(), olderThan, limit, visible)
	s.ok(err)
	return back
}

// What is stale goes back: pending, due at the given instant, ClaimedAt cleared. The rest stays as it is.
func rearmStale(s *suite) {
	rows := fanOut("w", 6)
	rows[1].TaskQueue, rows[1].Node = "q", "n"
	s.append(rows...)
	s.append(fanOut("pending", 1)...)
	s.claimScoped(outbox.Scope{}, 1) // ordinal 0, so that the claims are not all of one piece
	s.drain(10)
	s.ok(s.Store.Complete(s.Context(), key("w", 2)))
	s.ok(s.Store.Cancel(s.Context(), key("w", 3)))
	s.ok(s.Store.Retry(s.Context(), key("pending", 0), 1, s.now().Add(time.Hour)))
	claimed := s.scan("", "w")
	later := s.later()
	visible := outbox.CeilMilli(later.Add(time.Hour))
	pending := s.get(key("pending", 0))

	back := s.rearmStale(later, 100, visible)
	s.wantSet("re-armed", back, []outbox.Row{rows[0], rows[1], rows[4], rows[5]})
	for _, r := range back {
		want := claimed[r.Ordinal]
		want.Status, want.VisibleAfter, want.ClaimedAt = outbox.Pending, visible, time.Time{}
		s.wantRow("re-armed", r, want)
		s.wantRow("get after re-arm", s.get(r.Key()), want)
	}
	for _, o := range []int{2, 3} {
		s.wantRow("a resolved row", s.get(key("w", int64(o))), claimed[o])
	}
	s.wantRow("a pending row", s.get(key("pending", 0)), pending)
	s.unchanged("re-arm of nothing", func() {
		if back := s.rearmStale(s.now().Add(time.Hour), 100, visible); len(back) != 0 {
			s.Errorf("re-armed again: %v", keysOf(back))
		}
	})
	s.wantSet("nothing is due yet", s.claim(10), nil)
}

// rearmNow re-arms everything that is claimed and returns it.
func (s *suite) rearmNow(limit int) []outbox.Row {
	s.Helper()
	return s.rearmStale(s.now().Add(time.Hour), limit, s.now().Add(-time.Hour))
}

// Older means claimed before the instant, not at it.
func rearmStaleByAge(s *suite) {
	var batches [][]outbox.Row
	s.append(fanOut("w", 9)...)
	for range 3 {
		s.later()
		batches = append(batches, s.claim(3))
	}
	for i, batch := range batches {
		at := batch[0].ClaimedAt
		for _, r := range batch {
			if !r.ClaimedAt.Equal(at) {
				s.Fatalf("one claim has the instants %v and %v", at, r.ClaimedAt)
			}
		}
		s.wantSet("re-armed at the instant itself", s.rearmStale(at, 100, s.now().Add(time.Hour)), nil)
		s.wantSet("re-armed a millisecond later", s.rearmStale(at.Add(time.Millisecond), 100, s.now().Add(time.Hour)), fanOut("w", 9)[3*i:3*i+3])
	}
	s.wantSet("older than the beginning of time", s.rearmStale(time.Time{}, 100, s.now()), nil)
}

func rearmStaleLimit(s *suite) {
	s.append(fanOut("w", 10)...)
	s.append(fanOut("v", 7)...)
	s.drain(4)
	s.later()
	var all []outbox.Row
	for {
		back := s.rearmNow(5)
		if want := min(5, 17-len(all)); len(back) != want {
			s.Fatalf("re-armed %d rows after %d of 17, want %d", len(back), len(all), want)
		}
		if len(back) == 0 {
			break
		}
		all = append(all, back...)
	}
	s.wantSet("re-armed", all, slices.Concat(fanOut("w", 10), fanOut("v", 7)))
	s.wantSet("claimed again", s.drain(6), all)
}

func rearmStaleKeepsAttempt(s *suite) {
	s.append(fanOut("w", 3)...)
	s.ok(s.Store.Retry(s.Context(), key("w", 1), 5, s.now().Add(-time.Hour)))
	s.drain(10)
	s.later()
	for _, r := range s.rearmNow(10) {
		if want := map[int64]int{1: 5}[r.Ordinal]; r.Attempt != want || s.get(r.Key()).Attempt != want {
			s.Errorf("%s has attempt %d, want %d", nameOf(r), r.Attempt, want)
		}
	}
	for _, r := range s.drain(10) {
		if want := map[int64]int{1: 5}[r.Ordinal]; r.Attempt != want {
			s.Errorf("%s is claimed with attempt %d, want %d", nameOf(r), r.Attempt, want)
		}
	}
}

// A claimed row that does not say when it was claimed is nobody's to judge: it is left alone.
func rearmStaleWithoutClaimedAt(s *suite) {
	if s.ForgetClaimedAt == nil {
		s.Log("this backend cannot make such a row")
		return
	}
	s.append(fanOut("w", 3)...)
	s.drain(10)
	s.later()
	s.ForgetClaimedAt(s.T, key("w", 1))
	s.wantSet("re-armed", s.rearmNow(10), []outbox.Row{row("w", 0), row("w", 2)})
	if got := s.get(key("w", 1)); got.Status != outbox.Claimed || !got.ClaimedAt.IsZero() {
		s.Errorf("the row without a ClaimedAt is %+v", got)
	}
	s.ok(s.Store.Rearm(s.Context(), []outbox.Row{row("w", 1)})) // by name it goes back
	s.wantSet("claimed", s.drain(10), fanOut("w", 3))
}

// Given rows go back whatever they were doing: pending, due at their VisibleAfter, attempt kept.
func rearm(s *suite) {
	s.append(fanOut("w", 5)...)
	s.ok(s.Store.Retry(s.Context(), key("w", 1), 4, s.now().Add(-time.Hour)))
	s.wantSet("claim", s.claim(3), []outbox.Row{row("w", 1), row("w", 0), row("w", 2)})
	visible := outbox.CeilMilli(s.now().Add(time.Hour))
	before := s.scan("", "w")
	given := slices.Clone(before[:4]) // three are claimed, one is pending
	for i := range given {
		given[i].VisibleAfter = visible
		given[i].Attempt = 60 // what the caller believes about attempts does not count
	}
	s.ok(s.Store.Rearm(s.Context(), given))
	for i, got := range s.scan("", "w") {
		want := before[i]
		if i < 4 {
			want.Status, want.VisibleAfter, want.ClaimedAt = outbox.Pending, visible, time.Time{}
		}
		s.wantRow("re-armed", got, want)
	}
	s.wantSet("what is due", s.drain(10), fanOut("w", 5)[4:])

	// Zero means now.
	t0 := s.now()
	s.ok(s.Store.Rearm(s.Context(), []outbox.Row{row("w", 2), row("w", 4)}))
	t1 := s.now()
	for _, o := range []int64{2, 4} {
		if err := within(s.get(key("w", o)).VisibleAfter, t0, t1); err != nil {
			s.Errorf("re-armed for now: %v", err)
		}
	}
	s.wantSet("what is due", s.drain(10), []outbox.Row{row("w", 2), row("w", 4)})
}

// A pending row moves to its new instant and is claimed once, whichever way it moves.
func rearmMoves(s *suite) {
	rows := fanOut("w", 30)
	s.append(rows...)
	late, early := s.now().Add(time.Hour), s.now().Add(-time.Hour)
	at := func(t time.Time, ordinals ...int) []outbox.Row {
		var of []outbox.Row
		for _, o := range ordinals {
			r := rows[o]
			r.VisibleAfter = t
			of = append(of, r)
		}
		return of
	}
	s.ok(s.Store.Rearm(s.Context(), at(late, 3, 4, 5, 29, 0)))
	s.ok(s.Store.Rearm(s.Context(), at(early, 20, 4)))
	s.ok(s.Store.Rearm(s.Context(), at(late, 7)))
	s.ok(s.Store.Rearm(s.Context(), at(late, 7)))
	s.wantKeys("the first", s.claim(2), at(early, 4, 20))
	got := s.drain(10)
	s.wantSet("what is due", got, slices.DeleteFunc(slices.Clone(rows), func(r outbox.Row) bool {
		return slices.Contains([]int64{0, 3, 4, 5, 7, 20, 29}, r.Ordinal)
	}))
	s.ok(s.Store.Rearm(s.Context(), at(early, 0, 3, 5, 7, 29)))
	s.wantKeys("the last", s.drain(10), at(early, 0, 3, 5, 7, 29))
}

func rearmAbsentAndResolved(s *suite) {
	s.append(fanOut("w", 4)...)
	s.drain(10)
	s.ok(s.Store.Complete(s.Context(), key("w", 0)))
	s.ok(s.Store.Fail(s.Context(), key("w", 1)))
	s.ok(s.Store.Cancel(s.Context(), key("w", 2)))
	s.unchanged("re-arm of rows that are resolved or absent", func() {
		s.ok(s.Store.Rearm(s.Context(), fanOut("w", 3)))
		s.ok(s.Store.Rearm(s.Context(), []outbox.Row{row("w", 4), row("w", 400), row("v", 0)}))
		s.ok(s.Store.Rearm(s.Context(), nil))
	})
	s.ok(s.Store.Rearm(s.Context(), append(fanOut("w", 5), row("v", 0)))) // among others
	s.wantKeys("claim", s.claim(10), []outbox.Row{row("w", 3)})
}

// After a crash a caller re-arms all it has, more than fits in one step.
func rearmMany(s *suite) {
	rows := fanOut("w", 1100)
	s.append(rows...)
	s.claim(500)
	s.claim(300)
	for _, o := range []int64{0, 499, 500, 1000, 1099} {
		s.ok(s.Store.Complete(s.Context(), key("w", o)))
	}
	s.ok(s.Store.Rearm(s.Context(), rows))
	s.wantSet("claimed again", s.drain(1000), slices.DeleteFunc(rows, func(r outbox.Row) bool {
		return slices.Contains([]int64{0, 499, 500, 1000, 1099}, r.Ordinal)
	}))
}
