package outboxtest

import (
	"slices"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/outbox"
)

func claimCases() []testCase {
	return []testCase{
		{"Claim", claimOnce},
		{"ClaimLimits", claimLimits},
		{"ClaimOrder_Case23", case23},
		{"ClaimOrderOfOneMillisecond", claimTies},
		{"ClaimOrderInterleaved", claimInterleaved},
		{"ClaimOrderOverShards", claimOverShards},
		{"ClaimScopedOrder", claimScopedOrder},
		{"NeverEarly_Promise5", neverEarly},
		{"NeverEarlyAfterRetry_Promise5", neverEarlyAfterRetry},
		{"FarInstants_Case22", farInstants},
	}
}

func claimOnce(s *suite) {
	s.append(fanOut("w", 3)...)
	pending := s.scan("", "w")
	before := s.now()
	claimed := s.claim(10)
	after := s.now()
	s.wantKeys("claim", claimed, fanOut("w", 3))
	for i, r := range claimed {
		if err := within(r.ClaimedAt, before, after); err != nil {
			s.Errorf("claimed at: %v", err)
		}
		want := pending[i]
		want.Status, want.ClaimedAt = outbox.Claimed, r.ClaimedAt
		if d := diffAll(want, r); d != "" {
			s.Errorf("claim (-want +got):\n%s", d)
		}
		s.wantRow("get of a claimed row", s.get(r.Key()), want)
	}
	if again := s.claim(10); len(again) != 0 {
		s.Errorf("claimed twice: %v", keysOf(again))
	}
}

func claimLimits(s *suite) {
	if rows := s.claim(10); len(rows) != 0 {
		s.Errorf("claimed %v of nothing", keysOf(rows))
	}
	s.append(fanOut("w", 20)...)
	s.unchanged("a limit below 1", func() {
		for _, limit := range []int{0, -1, -1 << 40} {
			_, err := s.Store.Claim(s.Context(), limit)
			s.refused("claim", err, umbel.ErrInvalid)
			_, err = s.Store.ClaimScoped(s.Context(), outbox.Scope{}, limit)
			s.refused("claim scoped", err, umbel.ErrInvalid)
			_, err = s.Store.RearmStale(s.Context(), s.now(), limit, s.now())
			s.refused("re-arm stale", err, umbel.ErrInvalid)
		}
	})
	all := fanOut("w", 20)
	s.wantKeys("claim of 1", s.claim(1), all[:1])
	s.wantKeys("scoped claim of 1", s.claimScoped(outbox.Scope{}, 1), all[1:2])
	s.wantKeys("claim of 8", s.claim(8), all[2:10])
	s.wantKeys("claim of all there is", s.claim(10), all[10:])
	s.append(fanOut("w", 25)...)
	s.wantKeys("claim of more than there is", s.claim(1000), fanOut("w", 25)[20:])
}

// 1,000 rows of the same millisecond come in order of ordinal, 9 before 10.
func case23(s *suite) {
	rows := fanOut("w", 1000)
	at := s.now().Add(-time.Minute)
	for i := range rows {
		rows[i].VisibleAfter = at
	}
	s.append(rows...)
	var got []outbox.Row
	for limit := 1; len(got) < len(rows); limit = limit%97 + 1 {
		page := s.claim(limit)
		if want := min(limit, len(rows)-len(got)); len(page) != want {
			s.Fatalf("claim of %d after %d returned %d", limit, len(got), len(page))
		}
		got = append(got, page...)
	}
	s.wantKeys("claims", got, rows)
}

// Rows that became rows one by one, by retry, still sort by number.
func claimTies(s *suite) {
	ids := s.sameShard(3)
	at := s.now().Add(-time.Minute)
	var want []outbox.Row
	for o := range int64(12) {
		for _, id := range ids {
			want = append(want, row(id, o))
		}
	}
	slices.SortFunc(want, outbox.Compare)
	for _, id := range ids {
		s.append(fanOut(id, 12)...)
	}
	s.wantSet("claims", s.drain(100), want)
	for i := range want { // put back in an order that is not theirs
		r := want[(i*7)%len(want)]
		s.ok(s.Store.Retry(s.Context(), r.Key(), 1, at))
	}
	s.wantKeys("claims in pages", s.drain(5), want)
}

func (s *suite) interleaved(ids []umbel.WorkflowID) []outbox.Row {
	base := s.now().Add(-time.Hour)
	var rows []outbox.Row
	for j, id := range ids {
		for i := range 30 {
			r := row(id, int64(i))
			r.VisibleAfter = base.Add(time.Duration((i*7+j*3)%11) * time.Millisecond)
			if i%5 == 0 {
				r.TaskQueue, r.Node = "q", "n"
			}
			rows = append(rows, r)
		}
	}
	s.append(rows...)
	for i := range rows {
		rows[i].VisibleAfter = outbox.CeilMilli(rows[i].VisibleAfter)
	}
	slices.SortFunc(rows, outbox.Compare)
	return rows
}

// Rows of several workflows of one shard merge into one order, however few are taken at a time.
func claimInterleaved(s *suite) {
	want := s.interleaved(s.sameShard(4))
	var got []outbox.Row
	for limit := 1; len(got) < len(want); limit = limit%7 + 1 {
		page := s.claim(limit)
		if len(page) == 0 {
			s.Fatalf("nothing is due after %d of %d rows", len(got), len(want))
		}
		got = append(got, page...)
	}
	s.wantKeys("claims", got, want)
}

// Over several shards the order binds the rows of each; what one claim returns is merged.
func claimOverShards(s *suite) {
	ids := make([]umbel.WorkflowID, 12)
	for i := range ids {
		ids[i] = umbel.WorkflowID("over shards " + string(rune('a'+i)))
	}
	rows := s.interleaved(ids)
	want, got := map[int][]outbox.Row{}, map[int][]outbox.Row{}
	for _, r := range rows {
		sh := s.shard(r.WorkflowID)
		want[sh] = append(want[sh], r)
	}
	for taken := 0; taken < len(rows); {
		page := s.claim(17)
		if n := min(17, len(rows)-taken); len(page) != n {
			s.Fatalf("claim of 17 after %d of %d returned %d", taken, len(rows), len(page))
		}
		if !slices.IsSortedFunc(page, outbox.Compare) {
			s.Errorf("a claim is not in order: %v", keysOf(page))
		}
		for _, r := range page {
			sh := s.shard(r.WorkflowID)
			got[sh] = append(got[sh], r)
		}
		taken += len(page)
	}
	for sh := range want {
		s.wantKeys("claims of one shard", got[sh], want[sh])
	}
}

func claimScopedOrder(s *suite) {
	rows := s.interleaved(s.sameShard(4))
	scope := outbox.Scope{TaskQueue: "q", Node: "n"}
	want := slices.DeleteFunc(slices.Clone(rows), func(r outbox.Row) bool { return !scope.Admits(r) })
	var got []outbox.Row
	for {
		page := s.claimScoped(scope, 3)
		if len(page) == 0 {
			break
		}
		got = append(got, page...)
	}
	s.wantKeys("scoped claims", got, want)
	rest := slices.DeleteFunc(slices.Clone(rows), scope.Admits)
	s.wantKeys("what was left", s.drain(4), rest)
}

// No row is claimed before its visible_after by the store's clock.
func neverEarly(s *suite) {
	base := s.now()
	rows := fanOut("w", 8)
	for i := range rows {
		rows[i].VisibleAfter = base.Add(span + time.Duration(i)*span/4 + time.Duration(i)*time.Microsecond)
	}
	rows[3].VisibleAfter = base.Add(time.Hour) // a later one in between
	s.append(rows...)
	for i := range rows {
		rows[i].VisibleAfter = outbox.CeilMilli(rows[i].VisibleAfter)
	}
	s.watchDue(rows)
}

// watchDue claims at every edge at which one of rows becomes due, as they say and not as the store does, and
// checks that exactly the due rows come.
func (s *suite) watchDue(rows []outbox.Row) {
	s.Helper()
	rows = slices.Clone(rows)
	slices.SortFunc(rows, outbox.Compare)
	due, taken := map[string]time.Time{}, map[string]bool{}
	for _, r := range rows {
		due[nameOf(r)] = r.VisibleAfter
	}
	for _, next := range rows {
		if next.VisibleAfter.Sub(s.now()) > time.Minute {
			continue
		}
		for _, at := range []time.Time{next.VisibleAfter.Add(-1), next.VisibleAfter} {
			s.WaitUntil(s.T, at)
			before := s.now()
			claimed := s.claim(100)
			after := s.now()
			for _, r := range claimed {
				at := due[nameOf(r)]
				if r.ClaimedAt.Before(at) || after.Before(at) || !r.VisibleAfter.Equal(at) {
					s.Errorf("%s was claimed at %v, by %v, as due at %v, but is due at %v", nameOf(r), r.ClaimedAt, after, r.VisibleAfter, at)
				}
				taken[nameOf(r)] = true
			}
			for _, r := range rows {
				if !r.VisibleAfter.After(before) && !taken[nameOf(r)] {
					s.Errorf("%s is due at %v and was not claimed at %v", nameOf(r), r.VisibleAfter, before)
				}
			}
		}
	}
	for _, r := range rows {
		if r.VisibleAfter.Sub(s.now()) > time.Minute && taken[nameOf(r)] {
			s.Errorf("%s was claimed long before %v", nameOf(r), r.VisibleAfter)
		}
	}
}

func neverEarlyAfterRetry(s *suite) {
	s.append(fanOut("w", 6)...)
	s.append(fanOut("v", 2)...)
	s.drain(100)
	base := s.now()
	rows := fanOut("w", 6)
	for i := range rows {
		rows[i].VisibleAfter = outbox.CeilMilli(base.Add(span + time.Duration(i%3)*span/2))
	}
	s.ok(s.Store.Rearm(s.Context(), rows[:2]))
	for _, r := range rows[2:] {
		s.ok(s.Store.Retry(s.Context(), r.Key(), 1, r.VisibleAfter))
	}
	for i := range int64(2) { // claimed: put back as stale
		r := row("v", i)
		r.VisibleAfter = outbox.CeilMilli(base.Add(2 * span))
		rows = append(rows, r)
	}
	s.WaitUntil(s.T, base.Add(2*time.Millisecond))
	back, err := s.Store.RearmStale(s.Context(), s.now(), 10, rows[6].VisibleAfter)
	s.ok(err)
	s.wantSet("re-armed", back, rows[6:])
	s.watchDue(rows)
}

// An instant that is far away is refused by name or honoured, never an overflow that fires at once.
func farInstants(s *suite) {
	for i, at := range []time.Time{
		s.now().Add(25 * 24 * time.Hour), s.now().Add(9 * 365 * 24 * time.Hour),
		s.now().Add(292 * 365 * 24 * time.Hour), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC),
		time.Date(292_000_000, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		id := umbel.WorkflowID("far " + string(rune('a'+i)))
		r := row(id, 0)
		r.VisibleAfter = at
		if err := s.Store.Append(s.Context(), []outbox.Row{r}); err != nil {
			s.refused(at.String(), err, umbel.ErrInvalid, umbel.ErrLimit)
			if i < 2 {
				s.Errorf("%v is within the longest delay and was refused: %v", at, err)
			}
			s.append(row(id, 0))
			s.wantKeys("claim", s.claim(1), []outbox.Row{row(id, 0)})
		} else if got := s.get(r.Key()).VisibleAfter; !got.Equal(outbox.CeilMilli(at)) {
			s.Errorf("%v became %v", at, got)
		}
		if err := s.Store.Retry(s.Context(), r.Key(), 1, at); err != nil {
			s.refused(at.String(), err, umbel.ErrInvalid, umbel.ErrLimit)
		}
		if claimed := s.claim(10); len(claimed) != 0 {
			s.Errorf("claimed %v, which is due at %v", keysOf(claimed), at)
		}
	}
	past := row("past", 0)
	past.VisibleAfter = time.Date(1969, 7, 20, 20, 17, 40, 0, time.UTC)
	if err := s.Store.Append(s.Context(), []outbox.Row{past}); err != nil {
		s.refused("before 1970", err, umbel.ErrInvalid)
	} else {
		s.wantKeys("claim", s.claim(1), []outbox.Row{past})
	}
}
