package outboxtest

import (
	"fmt"
	"slices"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/outbox"
)

// A fresh fan-out may be stored as one piece whatever its N. These cases resolve and move rows inside it.
func spanCases() []testCase {
	return []testCase{
		{"EndInsideASpan_Case61", case61},
		{"EndAllOfASpan_Case61", endAll},
		{"AppendAfterAllHaveEnded_Promise11", appendAfterEnd},
		{"EndTheEdgesOfASpan_Case61", endEdges},
		{"EndALongRunInsideASpan_Case61", endLongRun},
		{"RetryInsideASpan", retryInside},
		{"EndBeforeItIsDue_Case61", endDelayed},
		{"SpanSplitByClaims", spanSplit},
	}
}

func except(rows []outbox.Row, gone ...int64) []outbox.Row {
	return slices.DeleteFunc(slices.Clone(rows), func(r outbox.Row) bool { return slices.Contains(gone, r.Ordinal) })
}

// A row that was resolved while it was still inside a fresh span is never claimed afterwards.
func case61(s *suite) {
	for i, gone := range [][]int64{{0}, {1}, {9}, {0, 1, 2}, {7, 8, 9}, {4}, {3, 5}, {3, 4, 5}, {0, 9}, {1, 3, 5, 7, 9}, {0, 2, 4, 6, 8}} {
		for _, limit := range []int{1, 3, 100} {
			e := ends()[(i+limit)%3]
			id := umbel.WorkflowID(fmt.Sprintf("w%d/%d", i, limit))
			rows := fanOut(id, 10)
			s.append(rows...)
			for _, o := range gone {
				s.end(e, key(id, o))
			}
			s.wantKeys(fmt.Sprintf("claims of %d without %v", limit, gone), s.drain(limit), except(rows, gone...))
			for _, o := range gone {
				if got := s.get(key(id, o)); got.Status != e.as {
					s.Errorf("%s is %s, want %s", nameOf(got), got.Status, e.as)
				}
			}
			s.later()
			s.wantSet("re-armed", s.rearmNow(100), except(rows, gone...))
			s.wantKeys("claimed again", s.drain(limit), except(rows, gone...))
			for o := range int64(10) {
				s.end(e, key(id, o))
			}
			s.invariant()
		}
	}
}

func endAll(s *suite) {
	for _, e := range ends() {
		id := umbel.WorkflowID(e.name)
		s.append(fanOut(id, 20)...)
		for o := range int64(20) {
			s.end(e, key(id, 19-o))
		}
		s.wantSet("claim", s.claim(5), nil)
		s.wantSet("claim", s.claimScoped(outbox.Scope{}, 100), nil)
		s.append(fanOut(id, 22)...)
		s.wantKeys("claim of what came later", s.drain(5), fanOut(id, 22)[20:])
	}
}

// Rows that come once all before them were resolved unclaimed are due like any other, however often somebody
// looked in between.
func appendAfterEnd(s *suite) {
	for _, n := range []int{1, 2, 8, 100} {
		for looks := range 3 {
			id := umbel.WorkflowID(fmt.Sprintf("w%d/%d", n, looks))
			at := s.now().Add(-time.Hour)
			rows := fanOut(id, n+2)
			for i := range rows {
				rows[i].VisibleAfter = at
			}
			s.append(rows[:n]...)
			for _, r := range rows[:n] {
				s.end(ends()[looks], r.Key())
			}
			for range looks {
				s.wantSet("claim of nothing", s.claim(1000), nil)
			}
			s.invariant()
			s.append(rows[n])
			s.wantKeys(fmt.Sprintf("claim after %d ended and %d looks", n, looks), s.claim(1000), rows[n:n+1])
			s.append(rows[n+1])
			s.wantKeys("claim of the next", s.claim(1000), rows[n+1:])
		}
	}
}

func endEdges(s *suite) {
	rows := fanOut("w", 100)
	s.append(rows...)
	s.wantKeys("claim", s.claim(10), rows[:10])
	s.ok(s.Store.Cancel(s.Context(), key("w", 10))) // the next
	s.ok(s.Store.Cancel(s.Context(), key("w", 99))) // the last
	s.ok(s.Store.Cancel(s.Context(), key("w", 9)))  // just claimed
	s.wantKeys("claim", s.claim(5), rows[11:16])
	s.ok(s.Store.Complete(s.Context(), key("w", 16)))
	s.ok(s.Store.Complete(s.Context(), key("w", 17)))
	s.ok(s.Store.Complete(s.Context(), key("w", 19)))
	s.wantKeys("claim", s.claim(3), []outbox.Row{rows[18], rows[20], rows[21]})
	s.wantKeys("the rest", s.drain(7), rows[22:99])
}

// A claim over a long run of resolved rows finds what is behind it.
func endLongRun(s *suite) {
	const n = 1500
	rows := fanOut("w", n)
	s.append(rows...)
	s.wantKeys("claim", s.claim(2), rows[:2])
	for o := int64(5); o < n-3; o++ {
		s.end(ends()[o%3], key("w", o))
	}
	s.invariant()
	s.wantKeys("the rest", s.drain(4), append(slices.Clone(rows[2:5]), rows[n-3:]...))
}

func retryInside(s *suite) {
	rows := fanOut("w", 30)
	s.append(rows...)
	late, early := s.now().Add(time.Hour), s.now().Add(-time.Hour)
	for _, o := range []int64{0, 7, 8, 29} {
		s.ok(s.Store.Retry(s.Context(), key("w", o), 1, late))
	}
	for _, o := range []int64{20, 12} {
		s.ok(s.Store.Retry(s.Context(), key("w", o), 2, early))
	}
	s.invariant()
	s.wantKeys("the early ones", s.claim(2), []outbox.Row{rows[12], rows[20]})
	s.wantKeys("the fresh ones", s.drain(9), except(rows, 0, 7, 8, 12, 20, 29))
	s.ok(s.Store.Cancel(s.Context(), key("w", 8)))
	for _, o := range []int64{0, 7, 29} {
		s.ok(s.Store.Retry(s.Context(), key("w", o), 2, early))
	}
	s.wantKeys("the late ones", s.drain(9), []outbox.Row{rows[0], rows[7], rows[29]})
}

func endDelayed(s *suite) {
	at := outbox.CeilMilli(s.now().Add(span))
	rows := fanOut("w", 10)
	for i := range rows {
		rows[i].VisibleAfter = at
	}
	s.append(rows...)
	for _, o := range []int64{0, 4, 5, 9} {
		s.end(ends()[o%3], key("w", o))
	}
	s.WaitUntil(s.T, at)
	s.wantKeys("claim", s.drain(2), except(rows, 0, 4, 5, 9))
}

// Claims of a piece, re-armed and claimed again in other pieces, never show a row twice.
func spanSplit(s *suite) {
	rows := fanOut("w", 200)
	s.append(rows...)
	held := map[int64]bool{}
	for round := range 40 {
		claimed := s.claim(round%9 + 1)
		for _, r := range claimed {
			if held[r.Ordinal] {
				s.Fatalf("%s was claimed twice", nameOf(r))
			}
			held[r.Ordinal] = true
		}
		if len(claimed) > 0 && round%3 == 0 {
			back := claimed[len(claimed)/2:]
			s.ok(s.Store.Rearm(s.Context(), back))
			for _, r := range back {
				held[r.Ordinal] = false
			}
		}
		s.invariant()
	}
	for _, r := range s.drain(50) {
		if held[r.Ordinal] {
			s.Fatalf("%s was claimed twice", nameOf(r))
		}
		held[r.Ordinal] = true
	}
	for o := range int64(200) {
		if !held[o] {
			s.Errorf("row %d was never claimed", o)
		}
	}
}
