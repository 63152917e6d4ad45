package lua

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// where is a row that a verb meets. Each puts row 3 of a run there and returns the claim that holds it, if any,
// and what is expected of the row's attempt once it was dropped.
var where = map[string]func(f *fan) (nonce string){
	"fresh": func(*fan) string { return "" },
	"held":  func(f *fan) string { return f.take(0, 4, long, "0-3") },
	"pending": func(f *fan) string {
		f.t.Helper()
		n := f.take(0, 4, long, "0-3")
		g := group(Requeue, n, 3)
		g.Items[0].Tries = "1"
		f.settle(g)
		return n
	},
	"completed": func(f *fan) string {
		f.t.Helper()
		n := f.take(0, 4, long, "0-3")
		g := group(Complete, n, 3)
		g.Attempt = 2
		f.settle(g)
		return n
	},
	"failed": func(f *fan) string {
		f.t.Helper()
		n := f.take(0, 4, long, "0-3")
		f.settle(group(Fail, n, 3))
		return n
	},
	"cancelled": func(f *fan) string {
		f.t.Helper()
		n := f.take(0, 4, long, "0-3")
		f.settle(group(CancelIt, "", 3))
		return n
	},
	"muted": func(f *fan) string { // resolved by the outbox, without an event
		f.t.Helper()
		n := f.take(0, 4, long, "0-3")
		g := group(Complete, n, 3)
		g.Items[0].Event = nil
		f.settle(g)
		return n
	},
}

// What every verb does to a row that is anywhere, reported by the claim that had it, by another, or from outside.
// Promise 6.
func TestSettleEveryVerb(t *testing.T) {
	t.Parallel()
	const ok = "ok"
	for _, c := range []struct {
		where           string
		by              string // claim: the one that has or had it; other: another one; outside: none
		c, f, x, q      string // ok, or the code and, of a dropped one, the attempt
		moves, noEvents bool
	}{
		{where: "fresh", by: "other", c: ok, f: "s0", x: "s0", q: "s0"},
		{where: "fresh", by: "outside", c: ok, f: ok, x: ok, q: ok},
		{where: "held", by: "claim", c: ok, f: ok, x: ok, q: ok},
		{where: "held", by: "other", c: ok, f: "s0", x: "s0", q: "s0"},
		{where: "held", by: "outside", c: ok, f: ok, x: ok, q: ok},
		{where: "pending", by: "claim", c: ok, f: "s0", x: "s0", q: "s0"},
		{where: "pending", by: "outside", c: ok, f: ok, x: ok, q: ok},
		{where: "completed", by: "claim", c: "d2", f: "d2", x: "d2", q: "d2"},
		{where: "completed", by: "outside", c: "d2", f: "d2", x: "d2", q: "d2"},
		{where: "failed", by: "other", c: "d1", f: "d1", x: "d1", q: "d1"},
		{where: "cancelled", by: "claim", c: "d0", f: "d0", x: "d0", q: "d0"},
		{where: "muted", by: "outside", c: ok, f: ok, x: ok, q: "d1"},
	} {
		t.Run(c.where+" by "+c.by, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, w *world) {
				for verb, want := range map[Verb]string{Complete: c.c, Fail: c.f, CancelIt: c.x, Requeue: c.q} {
					f := w.started(4, 8, "a")
					n := where[c.where](f)
					w.check()
					g := group(verb, "", 3)
					switch c.by {
					case "claim":
						g.Nonce = n
					case "other":
						g.Nonce = Nonce(nonce(), 0)
					}
					g.Items[0].Span = "00000000f00000007" // of a fresh row
					before := f.dumpAll()
					head, _ := strconv.ParseInt(f.field(f.wfKeys.Record, "head"), 10, 64)
					r := f.runSettle(f.settleCall(g))
					got := ok
					if len(r.Exceptions) == 1 {
						got = string(r.Exceptions[0].Code) + strconv.Itoa(r.Exceptions[0].Attempt)
					}
					if r.Outcome != "ok" || got != want {
						t.Errorf("%s: %+v, want %s", verb, r, want)
					}
					events := map[bool]int64{true: 1, false: 0}[want == ok]
					if verb == Requeue {
						events *= 2
					}
					wantEqual(t, string(verb)+": head", r.Number, head+events)
					if want != ok {
						wantEqual(t, string(verb)+": state", f.dumpAll(), before)
					}
					w.check()
				}
			})
		})
	}
}

// An ordinal that the run does not have; several groups in one call, and one preamble for each that has events.
func TestSettleGroups(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.started(4, 10, "a")
		n, m := f.take(0, 4, long, "0-3"), f.take(0, 3, long, "4-6")
		quiet := group(Complete, m, 4)
		quiet.Items[0].Event = nil
		second := group(Fail, n, 3)
		second.Attempt = 5
		back := group(Requeue, m, 5)
		back.Items[0].Event = []byte("failed5;started5;")
		r := f.runSettle(f.settleCall(group(Complete, n, 0, 10, 1, 8), second, group(Fail, m, 0, 2), quiet, back))
		wantEqual(t, "reply", r, SettleReply{Outcome: "ok", Status: "running", Number: 27, Exceptions: []Exception{
			{0, 1, 'n', 0}, {2, 0, 'd', 1}, {2, 1, 's', 0},
		}})
		w.check()
		wantEqual(t, "history", f.history()[2], "22-6 e by;c0;c1;c8;by;f3;by;failed5;started5;")
		wantEqual(t, "attempts", must(w.rdb.HGetAll(t.Context(), f.keys.Attempts()).Result())(t), map[string]string{"3": "5"})
		wantEqual(t, "holes", f.field(f.keys.Record(), "holes"), "1")
		record := must(w.rdb.HGetAll(t.Context(), f.keys.Record()).Result())(t)
		for field, want := range map[string]string{"completed": "4", "failed": "1", "cancelled": "0", "p0": "3", "muted": "1"} {
			wantEqual(t, field, record[field], want)
		}
		// nothing accepted, nothing written
		before := f.dumpAll()
		f.runSettle(f.settleCall(group(Fail, n, 0, 1), group(Requeue, "x", 2)))
		wantEqual(t, "state", f.dumpAll(), before)
	})
}

// A claim is gone with its last row, however the rows left it.
func TestSettleRemovesTheClaim(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.started(4, 10, "a")
		n := f.take(0, 5, long, "0-4")
		for i, g := range []Group{
			group(Complete, n, 0), group(Requeue, n, 1), group(CancelIt, "", 2), group(Complete, "late", 3),
		} {
			f.settle(g)
			wantEqual(t, "left", f.field(w.shard.Leases(), n+":n"), strconv.Itoa(4-i))
			w.check()
		}
		f.settle(group(Fail, n, 4))
		wantEqual(t, "deadline", w.deadline(n), int64(0))
		wantEqual(t, "leases", must(w.rdb.HLen(t.Context(), w.shard.Leases()).Result())(t), int64(0))
	})
}

// A late success takes the row from where it waits for its next attempt.
func TestSettleLateSuccess(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.started(4, 3, "a", "b")
		n := f.take(1, 2, long, "3-4")
		g := group(Requeue, n, 3)
		g.Route, g.Items[0].Due = 1, -3_600_000
		f.settle(g)
		wantEqual(t, "waits", len(f.members(f.keys.Due(1))), 2)
		late := group(Complete, n, 3)
		late.Attempt = 1
		f.settle(late)
		wantEqual(t, "waits", len(f.members(f.keys.Due(1))), 1)
		wantEqual(t, "pending", f.field(f.keys.Record(), "p1"), "1")
		wantEqual(t, "backlog", w.backlog(f.routes[1]), "1")
		w.check()
	})
}

// Redis is taken back to before an attempt, whose worker reports it all the same: history has no start of it, so it
// must not get its terminal. The work runs again.
func TestSettleOfAnAttemptThatIsGone(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.started(4, 2, "a")
		f.settle(group(Complete, f.take(0, 1, long, "0-0"), 0))
		for _, attempt := range []int{2, 64} {
			late := group(Complete, "of a claim that is gone", 1)
			late.Attempt = attempt
			r := f.runSettle(f.settleCall(late))
			wantEqual(t, "exceptions", r.Exceptions, []Exception{{Code: 's'}})
		}
		wantEqual(t, "status", f.settle(group(Complete, "of a claim that is gone", 1)), "completed")
		w.check()
	})
}

func TestSettleRequeue(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.started(4, 4, "a")
		n := f.take(0, 4, long, "0-3")
		g := group(Requeue, n, 0, 1, 2)
		at := w.now() + 3_600_000
		g.Items[0].Due, g.Items[0].Tries, g.Items[0].Error = at, "12", []byte("why\x00\n")
		g.Items[1].Due = -50_000
		before := w.now()
		f.settle(g)
		after := w.now()
		if rec := f.field(f.keys.Rows(), "0"); rec != "P1200"+strings.Repeat("-", 26)+"why\x00\n" {
			t.Errorf("record %q", rec)
		}
		wantEqual(t, "released", f.field(f.keys.Rows(), "1"), "P0000"+strings.Repeat("-", 26))
		scores := map[string]int64{}
		for _, z := range f.members(f.keys.Due(0)) {
			scores[z.Member.(string)] = int64(z.Score)
		}
		wantEqual(t, "due at", scores["00000000r"], at)
		if s := scores["00000001r"]; s < before+50_000 || s > after+50_000 {
			t.Errorf("due %d ms from now", s-before)
		}
		if s := scores["00000002r"]; s < before || s > after {
			t.Errorf("due %d ms from now", s-before)
		}
		w.check()
		// the run waits for the first of them
		if z := w.members(w.shard.Route(f.routes[0])); int64(z[0].Score) != scores["00000002r"] {
			t.Errorf("the run is looked at %v, rows %v", z, scores)
		}
	})
}

// A fresh row is moved out of its span, which is named by the caller.
func TestSettleRequeueOfFreshRows(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.started(4, 10, "a")
		requeue := func(span string, o int64) string {
			t.Helper()
			g := group(Requeue, "", o)
			g.Items[0].Span, g.Items[0].Due = span, -3_600_000
			r := f.runSettle(f.settleCall(g))
			w.check()
			if len(r.Exceptions) == 1 {
				return string(r.Exceptions[0].Code)
			}
			return r.Outcome
		}
		f.resolve(8)
		for _, bad := range []string{"", "00000000f00000008", "00000000r", "00000005f00000009", "x"} {
			before := f.dumpAll()
			wantEqual(t, "span "+bad, requeue(bad, 3), "v")
			wantEqual(t, "state", f.dumpAll(), before)
		}
		wantEqual(t, "outside of its span", requeue("00000000f00000009", 12), "n")
		wantEqual(t, "resolved", requeue("00000000f00000009", 8), "d")
		wantEqual(t, "the middle", requeue("00000000f00000009", 4), "ok")
		wantEqual(t, "the first", requeue("00000000f00000003", 0), "ok")
		wantEqual(t, "the last", requeue("00000005f00000009", 9), "ok")
		wantEqual(t, "once more, by its record", requeue("", 4), "ok")
		var members []string
		for _, z := range f.members(f.keys.Due(0)) {
			members = append(members, z.Member.(string))
		}
		slices.Sort(members)
		wantEqual(t, "members", members, []string{
			"00000000r", "00000001f00000003", "00000004r", "00000005f00000008", "00000009r",
		})
		// a span of one
		g := w.started(4, 1, "a")
		q := group(Requeue, "", 0)
		q.Items[0].Span = "00000000f00000000"
		g.settle(q)
		wantEqual(t, "a span of one", len(g.members(g.keys.Due(0))), 1)
	})
}

// A worker that names a row twice is told so, and changes nothing with it.
func TestSettleTwiceInAGroup(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.started(4, 3, "a")
		n := f.take(0, 3, long, "0-2")
		r := f.runSettle(f.settleCall(group(Complete, n, 0, 0), group(Requeue, n, 1, 1), group(Fail, n), group(Complete, "", 1, 1)))
		wantEqual(t, "reply", r, SettleReply{Outcome: "ok", Status: "running", Number: 11, Exceptions: []Exception{
			{0, 1, 's', 0}, {1, 1, 's', 0}, {3, 1, 's', 0},
		}})
		wantEqual(t, "left", f.field(w.shard.Leases(), n+":n"), "1")
		wantEqual(t, "no rows", w.renew(f.hold(n), f.hold(n, 2)), []string{"", "h"})
	})
}

// The attempt that is kept of a row is the one in its terminal, whatever the outbox had recorded before.
func TestSettleForgetsTheAttemptOfAMutedRow(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.started(4, 4, "a")
		mute := group(Complete, "", 1)
		mute.Attempt, mute.Items[0].Event = 3, nil
		f.settle(mute)
		wantEqual(t, "recorded by the outbox", f.field(f.keys.Attempts(), "1"), "3")
		f.settle(group(Complete, "", 1))
		wantEqual(t, "recorded by history", f.field(f.keys.Attempts(), "1"), "")
	})
}
