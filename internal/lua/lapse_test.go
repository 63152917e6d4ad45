package lua

import (
	"strconv"
	"strings"
	"testing"
)

// lapseCall puts the rows of a claim back, if its lease has lapsed.
func (f *fan) lapseCall(nonce string, ordinals ...int64) Settle {
	var groups []Group
	if len(ordinals) > 0 {
		groups = append(groups, group(Requeue, nonce, ordinals...))
	}
	p := f.settleCall(groups...)
	p.Lapse = nonce
	return p
}

// rowsOf are the ordinals that a claim's record names.
func (f *fan) rowsOf(l Lapsed) []int64 {
	var out []int64
	list := strings.Split(l.Record, "\n")[2]
	for span := range strings.SplitSeq(list, ",") {
		a, b, _ := strings.Cut(span, "-")
		first, _ := strconv.ParseInt(a, 10, 64)
		last, _ := strconv.ParseInt(b, 10, 64)
		out = append(out, seq(first, last)...)
	}
	return out
}

// Promise 13.
func TestLapse(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.started(4, 8, "a")
		n := f.take(0, 3, long, "0-2")
		if r := f.runSettle(f.lapseCall(n, 0, 1, 2)); r.Outcome != "live" || r.Number != w.deadline(n) {
			t.Errorf("too early: %+v", r)
		}
		if r := f.runSettle(f.lapseCall("none")); r.Outcome != "live" || r.Number != 0 {
			t.Errorf("no claim: %+v", r)
		}
		m := f.take(0, 3, 1, "3-5")
		f.settle(group(Complete, m, 4))
		w.pass(w.deadline(m))
		// the sweeper names what the claim's record has; what is settled meanwhile is dropped
		r := f.runSettle(f.lapseCall(m, 3, 4, 5))
		wantEqual(t, "lapse", r, SettleReply{
			Outcome: "ok", Status: "running", Number: r.Number, Exceptions: []Exception{{0, 1, 'd', 1}},
		})
		wantEqual(t, "deadline", w.deadline(m), int64(0))
		wantEqual(t, "pending", f.field(f.keys.Record(), "p0"), "4")
		w.check()
		if r := f.runSettle(f.lapseCall(m, 3, 4, 5)); r.Outcome != "live" || r.Number != 0 {
			t.Errorf("again: %+v", r)
		}
		f.take(0, 10, long, "6-7,3-3,5-5")
	})
}

// A claim of more rows than a call takes lapses in several; it stays until its last row is put back.
func TestLapseInSeveralCalls(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.started(4, 10, "a")
		n := f.take(0, 9, 1, "0-8")
		w.pass(w.deadline(n))
		for _, page := range [][]int64{seq(0, 3), seq(4, 7)} {
			if r := f.runSettle(f.lapseCall(n, page...)); r.Outcome != "ok" || len(r.Exceptions) > 0 {
				t.Fatalf("%+v", r)
			}
			w.check()
		}
		wantEqual(t, "left", f.field(w.shard.Leases(), n+":n"), "1")
		wantEqual(t, "not delivered by its lapse", f.field(w.shard.Leases(), n)[:1], "0")
		f.runSettle(f.lapseCall(n, 8))
		wantEqual(t, "deadline", w.deadline(n), int64(0))
	})
}

// A claim whose count is wrong goes as soon as a lapse finds none of its rows.
func TestLapseWithoutRows(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.started(4, 4, "a")
		n := f.take(0, 2, 1, "0-1")
		must(w.rdb.HSet(t.Context(), w.shard.Leases(), n+":n", 7).Result())(t)
		w.pass(w.deadline(n))
		f.runSettle(f.lapseCall(n, 0, 1))
		if w.deadline(n) == 0 {
			t.Error("the claim is gone with rows left by its count")
		}
		if r := f.runSettle(f.lapseCall(n, 0, 1)); r.Outcome != "ok" || len(r.Exceptions) != 2 || r.Exceptions[0].Code != 's' {
			t.Errorf("%+v", r)
		}
		wantEqual(t, "deadline", w.deadline(n), int64(0))
	})
}

// The last attempt of a row that lapses is its terminal, and may close the run.
func TestLapseCloses(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.started(4, 2, "a")
		n := f.take(0, 2, 1, "0-1")
		w.pass(w.deadline(n))
		p := f.settleCall(group(Fail, n, 0, 1))
		p.Lapse = n
		if r := f.runSettle(p); r.Outcome != "ok" || r.Status != "failed" {
			t.Errorf("%+v", r)
		}
		if r := f.runSettle(p); r.Outcome != "live" {
			t.Errorf("again: %+v", r)
		}
	})
}

// The claims of a run that was cancelled lapse like others and then are gone.
func TestLapseOfAClosedRun(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.started(4, 4, "a")
		n, m := f.take(0, 2, 1, "0-1"), f.take(0, 1, long, "2-2")
		must(w.s.Cancel(t.Context(), f.cancelCall()))(t)
		w.check()
		w.pass(w.deadline(n))
		if r := f.runSettle(f.lapseCall(n, 0, 1)); r.Outcome != "closed" || r.Status != "cancelled" {
			t.Errorf("%+v", r)
		}
		if r := f.runSettle(f.lapseCall(m, 2)); r.Outcome != "live" {
			t.Errorf("%+v", r)
		}
		wantEqual(t, "claims", len(w.members(w.shard.Claims())), 1)
		w.check()
		// and of one that retention has removed
		gone := w.fan(4, "a")
		must(w.rdb.Do(t.Context(), "ZADD", w.shard.Claims(), 1, "stray").Result())(t)
		if r := gone.runSettle(gone.lapseCall("stray")); r.Outcome != "absent" {
			t.Errorf("%+v", r)
		}
		wantEqual(t, "claims", len(w.members(w.shard.Claims())), 1)
	})
}
