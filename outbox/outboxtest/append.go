package outboxtest

import (
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/outbox"
)

func appendCases() []testCase {
	return []testCase{
		{"AppendDefaults", appendDefaults},
		{"AppendKeepsEveryField", appendEveryField},
		{"AppendNothing", appendNothing},
		{"AppendSkipsWhatExists", appendSkips},
		{"AppendSkipsWhatIsResolvedOrClaimed", appendSkipsAnyStatus},
		{"AppendGap", appendGap},
		{"AppendGapOfOneWorkflow", appendGapOfOne},
		{"AppendGrows", appendGrows},
		{"AppendManyWorkflows", appendMany},
		{"AppendRounding", appendRounding},
		{"AppendRoutes", appendRoutes},
		{"GetAbsent", getAbsent},
		{"ScanUnknown", scanUnknown},
		{"ScanStops", scanStops},
	}
}

// A new row is pending, attempt 0, visible now, unpinned, on default/default.
func appendDefaults(s *suite) {
	before := s.now()
	s.append(outbox.Row{WorkflowID: "w", ActivityType: "act"})
	after := s.now()
	got := s.get(outbox.Key{WorkflowID: "w"})
	if err := within(got.VisibleAfter, before, after); err != nil {
		s.Errorf("visible after: %v", err)
	}
	want := outbox.Row{
		Namespace: "default", WorkflowID: "w", TaskQueue: "default", ActivityType: "act",
		Status: outbox.Pending, VisibleAfter: got.VisibleAfter,
	}
	s.wantRow("get without a namespace", got, want)
	s.wantRow("get in the default namespace", s.get(key("w", 0)), want)
	if claimed := s.claim(10); len(claimed) != 1 {
		s.Errorf("claimed %v: a row that is visible now is due at once", keysOf(claimed))
	}
}

func appendEveryField(s *suite) {
	want := outbox.Row{
		Namespace: "n s", WorkflowID: "w:1", RunID: "run1", TaskQueue: "q/1", Node: "node-7", ActivityType: "a.b",
		Input:  umbel.Payload{ContentType: "application/x-thing", Data: []byte("in\x00put")},
		Status: outbox.Pending, VisibleAfter: s.now().Add(time.Hour).Truncate(time.Millisecond).UTC(),
	}
	s.append(want)
	got := s.get(want.Key())
	s.wantRow("get", got, want)
	all := s.scan("n s", "w:1")
	s.wantKeys("scan", all, []outbox.Row{want})
	s.wantRow("scan", all[0], want)
	if loc := got.VisibleAfter.Location(); loc != time.UTC {
		s.Errorf("visible after is in %v, want UTC", loc)
	}
}

func appendNothing(s *suite) {
	s.append(row("w", 0))
	s.unchanged("append of no rows", func() {
		s.append()
		s.ok(s.Store.Append(s.Context(), []outbox.Row{}))
	})
}

// A dispatch key that exists is silently skipped: the first row stays, whatever the second says.
func appendSkips(s *suite) {
	s.append(fanOut("w", 5)...)
	other := fanOut("w", 5)
	for i := range other {
		other[i].ActivityType, other[i].TaskQueue, other[i].Node = "other", "other", "other"
		other[i].VisibleAfter = s.now().Add(time.Hour)
		other[i].Input.Data = []byte("other")
	}
	s.unchanged("append of rows that exist", func() {
		s.append(other...)
		s.append(row("w", 3))
		s.append(row("w", 4), row("w", 3)) // in any order
	})
	// Those that exist beside those that do not.
	s.append(append(other, fanOut("w", 8)[5:]...)...)
	for i, got := range s.scan("", "w") {
		want := row("w", int64(i)).WithDefaults()
		want.VisibleAfter = got.VisibleAfter
		s.wantRow("scan", got, want)
	}
	// Twice in one call.
	twice := row("v", 1)
	twice.Input.Data = []byte("second")
	s.append(row("v", 0), row("v", 1), twice, row("v", 2))
	if got := s.get(key("v", 1)); string(got.Input.Data) != "v/1" {
		s.Errorf("the second row of one key in a call won: input %q", got.Input.Data)
	}
	s.wantKeys("scan", s.scan("", "v"), fanOut("v", 3))
}

func appendSkipsAnyStatus(s *suite) {
	s.append(fanOut("w", 5)...)
	claimed := s.claim(2)
	if len(claimed) != 2 {
		s.Fatalf("claimed %v", keysOf(claimed))
	}
	s.ok(s.Store.Complete(s.Context(), key("w", 1)))
	s.ok(s.Store.Fail(s.Context(), key("w", 2)))
	s.ok(s.Store.Cancel(s.Context(), key("w", 3)))
	s.ok(s.Store.Retry(s.Context(), key("w", 4), 1, s.now().Add(time.Hour)))
	s.unchanged("append of rows that exist", func() { s.append(fanOut("w", 5)...) })
}

func appendGap(s *suite) {
	s.unchanged("append with a gap", func() {
		s.refused("beyond an empty run", s.Store.Append(s.Context(), []outbox.Row{row("w", 1)}), umbel.ErrGap)
		s.refused("inside a call", s.Store.Append(s.Context(), []outbox.Row{row("w", 0), row("w", 2)}), umbel.ErrGap)
	})
	if rows := s.scan("", "w"); len(rows) != 0 {
		s.Errorf("a refused append left %v", keysOf(rows))
	}
	s.append(fanOut("w", 3)...)
	s.unchanged("append with a gap", func() {
		s.refused("one beyond", s.Store.Append(s.Context(), []outbox.Row{row("w", 4)}), umbel.ErrGap)
		s.refused("far beyond", s.Store.Append(s.Context(), []outbox.Row{row("w", umbel.MaxOrdinal)}), umbel.ErrGap)
		s.refused("after what exists and what fits", s.Store.Append(s.Context(), append(fanOut("w", 5), row("w", 6))), umbel.ErrGap)
	})
	s.append(row("w", 3)) // the run goes on where it was
	s.wantKeys("scan", s.scan("", "w"), fanOut("w", 4))
}

// A gap leaves nothing of its workflow; what becomes of the others in the call is their own matter, but each
// is there whole or not at all.
func appendGapOfOne(s *suite) {
	var rows []outbox.Row
	for i := range 3 {
		rows = append(rows, row("good", int64(i)), row("bad", int64(2*i)))
	}
	s.refused("gap", s.Store.Append(s.Context(), rows), umbel.ErrGap)
	if got := s.scan("", "bad"); len(got) != 0 {
		s.Errorf("the workflow with the gap has %v", keysOf(got))
	}
	if got := s.scan("", "good"); len(got) != 0 && len(got) != 3 {
		s.Errorf("the other workflow has a part of its rows: %v", keysOf(got))
	}
}

func appendGrows(s *suite) {
	for _, n := range []int{1, 2, 99, 100, 101, 250} {
		s.append(fanOut("w", n)...)
		s.wantKeys("scan", s.scan("", "w"), fanOut("w", n))
	}
	for i, r := range s.scan("", "w") {
		if want := row("w", int64(i)).Input; !samePayload(r.Input, want) {
			s.Fatalf("input of %d is %q, want %q", i, r.Input.Data, want.Data)
		}
	}
	s.wantSet("claims", s.drain(1000), fanOut("w", 250))
}

func appendMany(s *suite) {
	var rows, want []outbox.Row
	ids := []umbel.WorkflowID{"a", "b", "c", "d", "e"}
	for o := range 20 {
		for _, id := range ids {
			rows = append(rows, row(id, int64(o)))
		}
	}
	s.append(rows...)
	for _, id := range ids {
		s.wantKeys("scan", s.scan("", id), fanOut(id, 20))
		want = append(want, fanOut(id, 20)...)
	}
	s.wantSet("claims", s.drain(7), want)
}

// Instants are whole milliseconds; visible_after is rounded up, so that nothing is early.
func appendRounding(s *suite) {
	base := s.now().Add(time.Hour).Truncate(time.Millisecond).UTC()
	for i, d := range []time.Duration{0, 1, time.Microsecond, time.Millisecond - 1} {
		r := row("w", int64(i))
		r.VisibleAfter = base.Add(d)
		s.append(r)
		if got, want := s.get(r.Key()).VisibleAfter, outbox.CeilMilli(base.Add(d)); !got.Equal(want) {
			s.Errorf("%v became %v, want %v", base.Add(d), got, want)
		}
	}
}

// The rows of one workflow may differ in every part of their route, up to the limit.
func appendRoutes(s *suite) {
	rows := fanOut("w", umbel.MaxRoutes)
	for i := range rows {
		rows[i].ActivityType = "act" + string(rune('a'+i%4))
		rows[i].TaskQueue = "q" + string(rune('a'+i/4%4))
		rows[i].Node = []string{"", "n1", "n2", "n3"}[i/16%4]
	}
	s.append(rows...)
	for i, got := range s.scan("", "w") {
		want := rows[i].WithDefaults()
		want.VisibleAfter = got.VisibleAfter
		s.wantRow("scan", got, want)
	}
	one := row("w", umbel.MaxRoutes)
	one.TaskQueue = "one too many"
	s.unchanged("a route beyond the limit", func() {
		s.refused("65 routes", s.Store.Append(s.Context(), []outbox.Row{one}), umbel.ErrLimit)
	})
	again := rows[7]
	again.Ordinal = umbel.MaxRoutes
	s.append(again)
	s.wantSet("claims", s.drain(10), append(rows, again))
}

func getAbsent(s *suite) {
	s.append(fanOut("w", 2)...)
	for _, k := range []outbox.Key{
		key("w", 2), key("w", umbel.MaxOrdinal), key("v", 0), key("w:", 0), key("W", 0),
		{Namespace: "n", WorkflowID: "w"}, {Namespace: "Default", WorkflowID: "w"},
	} {
		r, err := s.Store.Get(s.Context(), k)
		if err == nil {
			s.Errorf("get of %+v: %+v", k, r)
			continue
		}
		s.refused("get of an absent row", err, umbel.ErrNotFound)
	}
}

func scanUnknown(s *suite) {
	s.append(fanOut("w", 2)...)
	for _, f := range []flow{{"", "v"}, {"n", "w"}, {"default", "w:0"}} {
		if rows := s.scan(f.namespace, f.id); len(rows) != 0 {
			s.Errorf("scan of %+v: %v", f, keysOf(rows))
		}
	}
}

// Breaking off a scan is fine, and so is ranging over it twice.
func scanStops(s *suite) {
	s.append(fanOut("w", 300)...)
	seq := s.Store.Scan(s.Context(), "", "w")
	for range 2 {
		var rows []outbox.Row
		for r, err := range seq {
			s.ok(err)
			if rows = append(rows, r); len(rows) == 150 {
				break
			}
		}
		s.wantKeys("half a scan", rows, fanOut("w", 150))
	}
}
