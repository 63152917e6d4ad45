package outboxtest

import (
	"context"
	"slices"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/outbox"
)

func transitionCases() []testCase {
	return []testCase{
		{"End", endRows},
		{"EndOfAbsentRows", endAbsent},
		{"TerminalRowsNeverChange", terminalStays},
		{"Retry", retry},
		{"RetryKeepsItsRoute_Case49", case49},
		{"RetryOfAnAbsentRow", retryAbsent},
		{"RetryOrder", retryOrder},
		{"GetAndScanAgree", getAndScanAgree},
	}
}

// end is one way to resolve a row.
type end struct {
	name string
	do   func(outbox.Store, context.Context, outbox.Key) error
	as   outbox.Status
}

func ends() []end {
	return []end{
		{"complete", outbox.Store.Complete, outbox.Done},
		{"fail", outbox.Store.Fail, outbox.Failed},
		{"cancel", outbox.Store.Cancel, outbox.Cancelled},
	}
}

func (s *suite) end(e end, keys ...outbox.Key) {
	s.Helper()
	for _, k := range keys {
		s.ok(e.do(s.Store, s.Context(), k))
	}
}

// Pending, claimed and retried rows can all be ended.
func endRows(s *suite) {
	for _, e := range ends() {
		id := umbel.WorkflowID(e.name)
		s.append(fanOut(id, 6)...)
		s.ok(s.Store.Retry(s.Context(), key(id, 1), 2, s.now().Add(-time.Minute)))
		s.wantSet("claim", s.claim(3), []outbox.Row{row(id, 1), row(id, 0), row(id, 2)})
		s.ok(s.Store.Retry(s.Context(), key(id, 2), 1, s.now().Add(time.Hour)))
		before := s.scan("", id)
		s.end(e, key(id, 0), key(id, 1), key(id, 2), key(id, 3)) // claimed, claimed retry, retried, fresh
		for i, got := range s.scan("", id) {
			want := before[i]
			if i < 4 {
				want.Status, want.ClaimedAt = e.as, time.Time{}
			}
			s.wantRow(e.name, got, want)
			s.wantRow(e.name+", get", s.get(key(id, int64(i))), got)
		}
		s.wantKeys("the rest", s.drain(10), fanOut(id, 6)[4:])
	}
}

func endAbsent(s *suite) {
	s.append(fanOut("w", 2)...)
	s.unchanged("the end of absent rows", func() {
		for _, e := range ends() {
			s.end(e, key("w", 2), key("w", umbel.MaxOrdinal), key("v", 0), outbox.Key{Namespace: "n", WorkflowID: "w"})
		}
	})
	if rows := s.scan("", "v"); len(rows) != 0 {
		s.Errorf("the end of an absent row made %v", keysOf(rows))
	}
	s.append(fanOut("v", 3)...) // nor does it stand in the way of rows to come
	s.append(fanOut("w", 4)...)
	s.wantSet("claim", s.drain(10), slices.Concat(fanOut("v", 3), fanOut("w", 4)))
}

// Nothing re-arms, claims or changes a terminal row.
func terminalStays(s *suite) {
	s.append(fanOut("w", 6)...)
	s.claim(3)
	for i, e := range ends() {
		s.end(e, key("w", int64(i)), key("w", int64(i+3))) // claimed before, fresh before
	}
	before := s.scan("", "w")
	s.later()
	s.unchanged("what comes after the end", func() {
		for o := range int64(6) {
			for _, e := range ends() {
				s.end(e, key("w", o))
			}
			s.ok(s.Store.Retry(s.Context(), key("w", o), 9, s.now().Add(-time.Hour)))
		}
		s.ok(s.Store.Rearm(s.Context(), fanOut("w", 6)))
		s.wantSet("re-armed", s.rearmNow(10), nil)
		s.append(fanOut("w", 6)...)
	})
	s.wantSet("claim", s.claim(10), nil)
	for i, got := range s.scan("", "w") {
		s.wantRow("scan", got, before[i])
		if want := ends()[i%3].as; got.Status != want || !got.ClaimedAt.IsZero() {
			s.Errorf("row %d is %s, claimed at %v; want %s, never", i, got.Status, got.ClaimedAt, want)
		}
	}
}

func retry(s *suite) {
	rows := fanOut("w", 4)
	rows[2].RunID, rows[0].RunID, rows[1].RunID, rows[3].RunID = "r", "r", "r", "r"
	s.append(rows...)
	s.wantKeys("claim", s.claim(2), rows[:2])
	before := s.scan("", "w")
	visible := s.now().Add(time.Hour)
	for i, attempt := range []int{1, umbel.MaxAttempts - 1, 3, 0} { // two claimed, two fresh
		s.ok(s.Store.Retry(s.Context(), key("w", int64(i)), attempt, visible.Add(time.Duration(i)*time.Microsecond)))
		want := before[i]
		want.Status, want.Attempt, want.ClaimedAt = outbox.Pending, attempt, time.Time{}
		want.VisibleAfter = outbox.CeilMilli(visible.Add(time.Duration(i) * time.Microsecond))
		s.wantRow("retried", s.get(want.Key()), want)
	}
	s.wantSet("nothing is due", s.claim(10), nil)
	s.ok(s.Store.Retry(s.Context(), key("w", 1), 7, s.now().Add(-time.Minute))) // again, sooner
	claimed := s.claim(10)
	s.wantKeys("claim", claimed, rows[1:2])
	if claimed[0].Attempt != 7 || !samePayload(claimed[0].Input, rows[1].Input) {
		s.Errorf("the retried row was claimed as %+v", claimed[0])
	}
}

// A retried row keeps its namespace, queue and node, however often.
func case49(s *suite) {
	rows := fanOut("w", 3)
	for i := range rows {
		rows[i].Namespace, rows[i].TaskQueue, rows[i].Node = "n", "q"+string(rune('a'+i)), "node"+string(rune('a'+i))
		rows[i].ActivityType = "t" + string(rune('a'+i))
	}
	s.append(rows...)
	for attempt := range 5 {
		for _, r := range rows {
			s.wantSet("claim in another scope", s.claimScoped(outbox.Scope{}, 10), nil)
			s.wantSet("claim without the node", s.claimScoped(outbox.Scope{Namespace: "n", TaskQueue: r.TaskQueue}, 10), nil)
			got := s.claimScoped(outbox.Scope{Namespace: "n", TaskQueue: r.TaskQueue, Node: r.Node}, 10)
			s.wantSet("claim", got, []outbox.Row{r})
			want := r
			want.Status, want.Attempt = outbox.Claimed, attempt
			s.wantRow("claim", withoutTime(got[0]), withoutTime(want))
			s.ok(s.Store.Retry(s.Context(), r.Key(), attempt+1, s.now().Add(-time.Second)))
		}
	}
}

func retryAbsent(s *suite) {
	s.append(fanOut("w", 2)...)
	s.unchanged("retry of absent rows", func() {
		for _, k := range []outbox.Key{key("w", 2), key("v", 0), {Namespace: "n", WorkflowID: "w"}} {
			s.ok(s.Store.Retry(s.Context(), k, 1, s.now()))
		}
	})
	s.wantKeys("claim", s.claim(10), fanOut("w", 2))
}

// Retried rows and fresh ones are in one order.
func retryOrder(s *suite) {
	base := s.now().Add(-time.Hour)
	rows := fanOut("w", 40)
	for i := range rows {
		rows[i].VisibleAfter = base
	}
	s.append(rows...)
	for i, ms := range []int{-1, 0, 1, 0, -1, 5, 0} {
		o := (i*11 + 4) % 40
		rows[o].VisibleAfter = base.Add(time.Duration(ms) * time.Millisecond)
		s.ok(s.Store.Retry(s.Context(), rows[o].Key(), 1, rows[o].VisibleAfter))
	}
	for i := range rows {
		rows[i].VisibleAfter = outbox.CeilMilli(rows[i].VisibleAfter)
	}
	slices.SortFunc(rows, outbox.Compare)
	s.wantKeys("claims", s.drain(3), rows)
}

func getAndScanAgree(s *suite) {
	rows := fanOut("w", 250)
	for i := range rows {
		rows[i].TaskQueue = []string{"", "q"}[i/50%2]
		rows[i].VisibleAfter = s.now().Add(time.Duration(i%3-1) * time.Hour)
	}
	s.append(rows...)
	s.claim(40)
	for o := int64(0); o < 250; o += 7 {
		switch o % 5 {
		case 0:
			s.ok(s.Store.Complete(s.Context(), key("w", o)))
		case 1:
			s.ok(s.Store.Fail(s.Context(), key("w", o)))
		case 2:
			s.ok(s.Store.Retry(s.Context(), key("w", o), int(o%4), s.now()))
		case 3:
			s.ok(s.Store.Cancel(s.Context(), key("w", o)))
		}
	}
	scanned := s.scan("", "w")
	s.wantKeys("scan", scanned, rows)
	for _, r := range scanned {
		s.wantRow("get", s.get(r.Key()), r)
	}
}

// withoutTime leaves a row's instants out of a comparison.
func withoutTime(r outbox.Row) outbox.Row {
	r.VisibleAfter, r.ClaimedAt = time.Time{}, time.Time{}
	return r
}
