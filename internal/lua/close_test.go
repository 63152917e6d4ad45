package lua

import (
	"slices"
	"testing"
)

// The step that resolves the last row closes the run, with the verdict that its counts make. Promise 10.
func TestSettleCloses(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		for _, c := range []struct {
			verbs  [3]Verb
			status string
		}{
			{[3]Verb{Complete, Complete, Complete}, "completed"},
			{[3]Verb{Complete, Fail, Complete}, "failed"},
			{[3]Verb{Fail, Fail, CancelIt}, "failed"},
			{[3]Verb{Complete, CancelIt, Complete}, "failed"},
			{[3]Verb{CancelIt, CancelIt, CancelIt}, "cancelled"},
		} {
			f := w.started(4, 2, "a", "b")
			neighbour := w.started(4, 1, "a")
			f.resolve(2) // a hole
			n := f.take(0, 2, long, "0-1")
			f.settle(group(c.verbs[0], n, 0), group(Requeue, n, 1))
			// row 3 is fresh, row 1 waits, both go with the close
			status := f.settle(group(c.verbs[1], "", 1), group(c.verbs[2], "", 3))
			want := c.status
			if want == "cancelled" { // row 2 was completed
				want = "failed"
			}
			wantEqual(t, "reply", status, want)
			wantEqual(t, "status", f.status(), want)
			w.check()
			h := f.history()
			last := h[len(h)-1]
			wantEqual(t, "history", last, last[:len(last)-len(want)-1]+want+";")
			if f.field(f.keys.Record(), "closed") == "" {
				t.Error("no instant of the close")
			}
			wantEqual(t, "left", w.dump(f.keys.Rows(), f.keys.Due(0), f.keys.Due(1)), map[string]any{})
			for i, r := range f.routes {
				if slices.ContainsFunc(w.runsOn(r), func(id string) bool { return id == f.id }) {
					t.Errorf("the run waits on route %d", i)
				}
			}
			if !slices.Contains(w.runsOn(f.routes[0]), neighbour.id) {
				t.Error("the neighbour waits no more")
			}
			if r := f.runSettle(f.settleCall(group(Complete, n, 0))); r.Outcome != "closed" || r.Status != want {
				t.Errorf("later: %+v", r)
			}
		}
		// of three cancelled rows
		f := w.started(4, 3, "a")
		wantEqual(t, "all cancelled", f.settle(group(CancelIt, "", 0, 1, 2)), "cancelled")
	})
}

// runsOn names the runs that wait on a route.
func (w *world) runsOn(route string) []string {
	w.t.Helper()
	var out []string
	for _, z := range w.members(w.shard.Route(route)) {
		out = append(out, z.Member.(string))
	}
	return out
}

// A run that is written from outside stays open: more rows may come.
func TestSettleLeavesAnOutsideRunOpen(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fan(4, "a")
		f.token("me")
		s := f.staging()
		s.stage(rows{n: 2})
		f.dispatch(s, Fence{})
		n := f.take(0, 2, long, "0-1")
		wantEqual(t, "status", f.settle(group(Complete, n, 0, 1)), "running")
		wantEqual(t, "status", f.status(), "running")
		w.check()
	})
}

func TestSettleRefuses(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.started(4, 4, "a", "b")
		f.token("me")
		n := f.take(0, 2, long, "0-1")
		before := f.dumpAll()
		for name, c := range map[string]struct {
			change  func(p *Settle)
			outcome string
			number  int64
		}{
			"another token":  {func(p *Settle) { p.Fence = Fence{Token: "you", Head: 17} }, "fenced", 0},
			"another head":   {func(p *Settle) { p.Fence = Fence{Token: "me", Head: 16} }, "conflict", 17},
			"old routes":     {func(p *Settle) { p.Routes = p.Routes[:1] }, "routes", 2},
			"a full history": {func(p *Settle) { p.MaxSeq = 18 }, "full", 17},
			"a live claim":   {func(p *Settle) { p.Lapse = n }, "live", w.deadline(n)},
			"no run":         {func(p *Settle) { p.Run = f.keys.Index() }, "absent", 0},
		} {
			p := f.settleCall(group(Complete, n, 0))
			c.change(&p)
			r := f.runSettle(p)
			if r.Outcome != c.outcome || r.Number != c.number {
				t.Errorf("%s: %+v, want %s %d", name, r, c.outcome, c.number)
			}
			wantEqual(t, name+": state", f.dumpAll(), before)
		}
		p := f.settleCall(group(Complete, n, 0))
		p.Fence = Fence{Token: "me", Head: 17}
		if r := f.runSettle(p); r.Outcome != "ok" || r.Number != 18 {
			t.Errorf("as expected: %+v", r)
		}
		s := w.fan(4, "a")
		s.stage(rows{n: 1})
		if r := s.runSettle(s.settleCall(group(Complete, "", 0))); r.Outcome != "absent" && r.Outcome != "closed" {
			t.Errorf("a staging: %+v", r)
		}
	})
}

// History gets the terminal of a row that the outbox resolved alone, once.
func TestSettleMuted(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.started(4, 4, "a")
		n := f.take(0, 4, long, "0-3")
		quiet := group(Complete, n, 1, 2)
		quiet.Items[0].Event, quiet.Items[1].Event = nil, nil
		f.settle(quiet)
		wantEqual(t, "history", len(f.history()), 2)
		loud := group(Complete, "", 1)
		loud.Attempt = 3
		r := f.runSettle(f.settleCall(loud))
		wantEqual(t, "loud", r, SettleReply{Outcome: "ok", Status: "running", Number: 10})
		r = f.runSettle(f.settleCall(loud))
		wantEqual(t, "twice", r, SettleReply{Outcome: "ok", Status: "running", Number: 10, Exceptions: []Exception{{0, 0, 'd', 3}}})
		wantEqual(t, "history", f.history()[2], "10-1 e by;c1;")
		wantEqual(t, "completed", f.field(f.keys.Record(), "completed"), "2")
		// without an event it is a repetition
		r = f.runSettle(f.settleCall(quiet))
		wantEqual(t, "quiet again", len(r.Exceptions), 2)
	})
}
