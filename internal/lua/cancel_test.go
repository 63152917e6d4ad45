package lua

import (
	"strconv"
	"testing"
)

// Promise 12: once it has returned, no row of the run is claimed.
func TestCancel(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		for _, n := range []int{1, 7, 8, 9, 16, 20} {
			f, neighbour := w.started(4, n, "a"), w.started(4, 3, "a")
			got := ""
			open := int64(n)
			if n > 4 {
				c := f.take(0, 4, long, "0-3")
				f.settle(group(Complete, c, 0), group(Fail, c, 1), group(CancelIt, "", 4), group(Requeue, c, 2))
				open -= 3
				got = "11001"
			}
			r := must(w.s.Cancel(t.Context(), f.cancelCall()))(t)
			head, _ := strconv.ParseInt(f.field(f.wfKeys.Record, "head"), 10, 64)
			wantEqual(t, "reply", r, CancelReply{Outcome: "ok", Cancelled: open, Head: head})
			w.check()
			h := f.history()
			first := head - open - 2
			wantEqual(t, "history", h[len(h)-3:], []string{
				strconv.FormatInt(first, 10) + "-1 e requested;",
				strconv.FormatInt(first+1, 10) + "-" + strconv.FormatInt(open, 10) + " x " + f.id,
				strconv.FormatInt(head-1, 10) + "-2 e decided;closed;",
			})
			for o := range 24 {
				rest, resolved := int64(0), int64(0)
				if o < n {
					resolved, rest = 1, 1
					if o < len(got) && got[o] == '1' {
						rest = 0
					}
				}
				wantEqual(t, "rest "+strconv.Itoa(o), must(w.rdb.GetBit(t.Context(), f.keys.Rest(), int64(o)).Result())(t), rest)
				wantEqual(t, "resolved "+strconv.Itoa(o), must(w.rdb.GetBit(t.Context(), f.keys.Resolved(), int64(o)).Result())(t), resolved)
			}
			wantEqual(t, "pending", f.field(f.keys.Record(), "p0"), "0")
			wantEqual(t, "backlog", w.backlog(f.routes[0]), "3")
			wantEqual(t, "on the route", w.runsOn(f.routes[0]), []string{neighbour.id})
			wantEqual(t, "left", w.dump(f.keys.Rows(), f.keys.Due(0)), map[string]any{})
			_, c := f.claim(0, 100, long)
			wantEqual(t, "claimed", granted(c), "")

			if r := must(w.s.Cancel(t.Context(), f.cancelCall()))(t); r.Outcome != "closed" || r.Status != "cancelled" {
				t.Errorf("again: %+v", r)
			}
			if r := f.runSettle(f.settleCall(group(Complete, "", 0))); r.Outcome != "closed" || r.Status != "cancelled" {
				t.Errorf("a late report: %+v", r)
			}
			must(w.s.Cancel(t.Context(), neighbour.cancelCall()))(t)
		}
		wantEqual(t, "ready", w.members(w.shard.Ready()), w.members("none"))
		wantEqual(t, "backlog", must(w.rdb.HLen(t.Context(), w.shard.Backlog()).Result())(t), int64(0))
	})
}

func TestCancelRefuses(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.started(4, 4, "a", "b")
		before := f.dumpAll()
		p := f.cancelCall()
		p.Routes = p.Routes[:1]
		if r := must(w.s.Cancel(t.Context(), p))(t); r.Outcome != "routes" || r.Routes != 2 {
			t.Errorf("old routes: %+v", r)
		}
		p = f.cancelCall()
		p.MaxSeq = 17 + 8 + 2
		if r := must(w.s.Cancel(t.Context(), p))(t); r.Outcome != "full" || r.Head != 17 {
			t.Errorf("a full history: %+v", r)
		}
		wantEqual(t, "state", f.dumpAll(), before)
		s := w.fan(4, "a")
		if r := must(w.s.Cancel(t.Context(), s.cancelCall()))(t); r.Outcome != "absent" {
			t.Errorf("no run: %+v", r)
		}
		s.stage(rows{n: 1})
		if r := must(w.s.Cancel(t.Context(), s.cancelCall()))(t); r.Outcome != "absent" {
			t.Errorf("a staging: %+v", r)
		}
	})
}

// A run from outside may be open with nothing open in it.
func TestCancelOfNothingOpen(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fan(4, "a")
		s := f.staging()
		s.stage(rows{n: 2})
		f.dispatch(s, Fence{})
		f.resolve(0, 1)
		if r := must(w.s.Cancel(t.Context(), f.cancelCall()))(t); r.Outcome != "ok" || r.Cancelled != 0 || r.Head != 9 {
			t.Errorf("%+v", r)
		}
		wantEqual(t, "status", f.status(), "cancelled")
	})
}
