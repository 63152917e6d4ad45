package lua

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

func (w *world) runClaim(p Claim) ClaimReply {
	w.t.Helper()
	r := must(w.s.Claim(w.ctx(), p))(w.t)
	if r.Outcome != "ok" {
		w.t.Fatalf("claim: %+v", r)
	}
	return r
}

// spans of all that a claim granted.
func granted(c Claimed) string {
	var all []string
	for _, g := range c.Grants {
		all = append(all, g.Spans)
	}
	return strings.Join(all, ",")
}

func (w *world) backlog(route string) string { w.t.Helper(); return w.field(w.shard.Backlog(), route) }

func TestClaimSplitsASpan(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.started(4, 10, "a")
		before := w.now()
		n, c := f.claim(0, 3, long)
		after := w.now()
		wantEqual(t, "first", granted(c), "0-2")
		wantEqual(t, "chunks", c.Chunks, map[int64]string{0: "<0><1><2><3>"})
		wantEqual(t, "rest", f.spans(0), []string{"00000003f00000009@0"})
		wantEqual(t, "pending", f.field(f.keys.Record(), "p0"), "7")
		wantEqual(t, "backlog", w.backlog(f.routes[0]), "7")
		if c.Next != strconv.FormatFloat(w.members(f.keys.Due(0))[0].Score, 'f', -1, 64) {
			t.Errorf("next is %s", c.Next)
		}
		for o := range 3 {
			wantEqual(t, "record", f.field(f.keys.Rows(), strconv.Itoa(o)), "C0000"+n)
		}
		lease := f.field(w.shard.Leases(), n)
		at, _ := strconv.ParseInt(lease[10:23], 10, 64)
		if at < before || at > after || lease[:10] != fmt.Sprintf("0%09d", long) || lease[23:] != "00worker\n"+f.id+"\n0-2" {
			t.Errorf("lease %q, claimed between %d and %d", lease, before, after)
		}
		z := w.members(w.shard.Claims())
		if len(z) != 1 || z[0].Member != n || int64(z[0].Score) != at+long {
			t.Errorf("claims %v", z)
		}
		w.check()
		n, c = f.claim(0, 100, long)
		wantEqual(t, "second", granted(c), "3-9")
		wantEqual(t, "chunks", c.Chunks, map[int64]string{0: "<0><1><2><3>", 1: "<4><5><6><7>", 2: "<8><9>"})
		wantEqual(t, "next", c.Next, "")
		wantEqual(t, "backlog", w.backlog(f.routes[0]), "")
		wantEqual(t, "left", f.field(w.shard.Leases(), n+":n"), "7")
		wantEqual(t, "route", w.members(w.shard.Route(f.routes[0])), w.members("none"))
		w.check()
		_, c = f.claim(0, 1, long)
		wantEqual(t, "third", len(c.Grants), 0)
	})
}

// Singles and spans of one millisecond come by ordinal.
func TestClaimOrder(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fan(4, "a")
		at := w.now() - 1000
		f.stage(rows{n: 3, notBefore: at + 10}, rows{n: 2, notBefore: at}, rows{n: 5, notBefore: at + 10})
		// Stage takes its own clock as the least; tests move the members to the instants that they mean.
		for _, z := range f.members(f.keys.Due(0)) {
			must(w.rdb.ZRem(t.Context(), f.keys.Due(0), z.Member).Result())(t)
		}
		for _, m := range []struct {
			member string
			score  int64
		}{{"00000000f00000002", at + 10}, {"00000003f00000004", at}, {"00000005f00000009", at + 10}} {
			must(w.rdb.Do(t.Context(), "ZADD", f.keys.Due(0), m.score, m.member).Result())(t)
		}
		f.commit()
		n := f.take(0, 6, long, "3-4,0-2,5-5")
		back := group(Requeue, n, 5, 1, 4)
		back.Items[0].Due, back.Items[1].Due, back.Items[2].Due = at+10, at+10, at+20
		f.settle(back)
		w.check()
		f.take(0, 7, long, "1-1,5-9,4-4")
	})
}

func TestClaimSeveralPollsAndPairs(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f, g := w.started(4, 5, "a", "b"), w.started(4, 3, "a")
		takers := []Taker{{nonce(), 2, "one"}, {nonce(), 0, "none"}, {nonce(), 6, "two"}, {nonce(), 9, "three"}}
		pf := f.pair(1)
		pf.Most = 4
		r := w.runClaim(w.claimCall(long, takers, f.pair(0), g.pair(0), pf))
		w.check()
		if len(r.Pairs) != 3 {
			t.Fatalf("%+v", r)
		}
		wantEqual(t, "first pair", r.Pairs[0].Grants, []Grant{{0, "0-1"}, {2, "2-4"}})
		wantEqual(t, "second pair", r.Pairs[1].Grants, []Grant{{2, "0-2"}})
		wantEqual(t, "third pair", r.Pairs[2].Grants, []Grant{{3, "5-8"}})
		wantEqual(t, "routes", len(r.Routes), 2)
		wantEqual(t, "route a", r.Routes[f.routes[0]], "")
		z := w.members(w.shard.Ready())
		if at, err := strconv.ParseFloat(r.Routes[f.routes[1]], 64); err != nil || len(z) != 1 || z[0].Score != at {
			t.Errorf("routes %v, ready %v", r.Routes, z)
		}
		leases := must(w.rdb.HGetAll(t.Context(), w.shard.Leases()).Result())(t)
		for n, end := range map[string]string{
			Nonce(takers[0].Nonce, 0): "00one\n" + f.id + "\n0-1",
			Nonce(takers[2].Nonce, 0): "00two\n" + f.id + "\n2-4",
			Nonce(takers[2].Nonce, 1): "00two\n" + g.id + "\n0-2",
			Nonce(takers[3].Nonce, 2): "01three\n" + f.id + "\n5-8",
		} {
			if !strings.HasSuffix(leases[n], end) {
				t.Errorf("lease %q, want it to end with %q", leases[n], end)
			}
		}
		wantEqual(t, "leases", len(leases), 8)
	})
}

// The reply was lost and the call comes again: nothing more is taken.
func TestClaimAgain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.started(4, 5, "a")
		takers := []Taker{{nonce(), 1, "one"}, {nonce(), 1, "two"}}
		w.runClaim(w.claimCall(long, takers, f.pair(0)))
		before := f.dumpAll()
		for _, ts := range [][]Taker{takers, takers[1:], {{nonce(), 3, "new"}, takers[0]}} {
			if r := must(w.s.Claim(t.Context(), w.claimCall(long, ts, f.pair(0))))(t); r.Outcome != "again" {
				t.Errorf("%+v", r)
			}
		}
		wantEqual(t, "state", f.dumpAll(), before)
	})
}

func TestClaimBudgetOfChunks(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f, g := w.started(2, 9, "a"), w.started(2, 9, "a")
		p := w.claimCall(long, []Taker{{nonce(), 100, "w"}}, f.pair(0), g.pair(0))
		p.MaxChunks = 3
		r := w.runClaim(p)
		if len(r.Pairs) != 1 || granted(r.Pairs[0]) != "0-5" {
			t.Errorf("%+v", r)
		}
		w.check()
		p.Takers[0].Nonce = nonce()
		r = w.runClaim(p)
		if len(r.Pairs) != 2 || granted(r.Pairs[0]) != "6-8" || granted(r.Pairs[1]) != "0-1" {
			t.Errorf("%+v", r)
		}
		wantEqual(t, "chunks", r.Pairs[1].Chunks, map[int64]string{0: "<0><1>"})
	})
}

func TestClaimBudgetOfLargeInputs(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fan(4, "a")
		for _, o := range []int64{1, 2, 4} {
			f.large[o] = true
		}
		f.input = func(o int64) string {
			if f.large[o] {
				return strings.Repeat(strconv.FormatInt(o, 10), 100)
			}
			return "."
		}
		f.stage(rows{n: 6})
		f.commit()
		claim := func(most int64, want string, large ...int64) {
			t.Helper()
			p := w.claimCall(long, []Taker{{nonce(), 100, "w"}}, f.pair(0))
			p.MaxLarge = most
			c := w.runClaim(p).Pairs[0]
			wantEqual(t, "taken", granted(c), want)
			wantEqual(t, "large", len(c.Large), len(large))
			for _, o := range large {
				wantEqual(t, "input", c.Large[o], f.input(o))
			}
		}
		claim(50, "0-0")      // the next one is too large, and something was taken
		claim(50, "1-1", 1)   // it travels alone
		claim(150, "2-3", 2)  // and this one with what is small
		claim(1000, "4-5", 4) // the rest
	})
}

// Rows that failed bring their last error. Many long ones must not make a script slow or a reply large.
func TestClaimBudgetOfRecords(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.started(4, 6, "a")
		n := f.take(0, 4, long, "0-3")
		w.pass(w.now()) // else they are due in the millisecond of the rows that are fresh
		back := group(Requeue, n, 0, 1, 2, 3)
		for i := range back.Items {
			back.Items[i].Tries, back.Items[i].Error = "1", bytes.Repeat([]byte("no"), 50)
		}
		f.settle(back)
		claim := func(most int64, want string) {
			t.Helper()
			p := w.claimCall(long, []Taker{{nonce(), 100, "w"}}, f.pair(0))
			p.MaxLarge = most
			wantEqual(t, "taken", granted(w.runClaim(p).Pairs[0]), want)
			w.check()
		}
		claim(300, "4-5,0-1") // a record is 131 bytes
		claim(50, "2-2")      // it travels alone
		claim(1000, "3-3")    // the rest
	})
}

func TestClaimBringsRecords(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.started(4, 6, "a")
		n := f.take(0, 4, long, "0-3")
		w.pass(w.now()) // else they are due in the millisecond of the rows that are fresh
		back := group(Requeue, n, 0, 2)
		back.Items[0].Tries, back.Items[0].Error = "3", []byte("boom\x00")
		f.settle(back)
		n, c := f.claim(0, 3, long)
		wantEqual(t, "taken", granted(c), "4-5,0-0")
		if len(c.Retried) != 1 || !strings.HasPrefix(c.Retried[0], "P0300") || c.Retried[0][31:] != "boom\x00" {
			t.Errorf("retried %v", c.Retried)
		}
		wantEqual(t, "record", f.field(f.keys.Rows(), "0"), "C0300"+n+"boom\x00")
		wantEqual(t, "chunks", len(c.Chunks), 2)
		w.check()
		// as many tries as before, unless something else is said
		f.settle(group(Requeue, n, 0))
		if rec := f.field(f.keys.Rows(), "0"); rec[:5] != "P0300" || rec[31:] != "boom\x00" {
			t.Errorf("record %q", rec)
		}
	})
}

// A run that was served goes behind the others; one whose next row is in the future waits for that.
func TestClaimRotates(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		fans := []*fan{w.started(4, 4, "a"), w.started(4, 4, "a"), w.started(4, 4, "a")}
		route := w.shard.Route(fans[0].routes[0])
		byID := map[string]*fan{}
		for _, f := range fans {
			byID[f.id] = f
		}
		served := map[string]int{}
		for range 12 {
			first := must(w.rdb.ZRange(t.Context(), route, 0, 0).Result())(t)[0]
			byID[first].claim(0, 1, long)
			served[first]++
			for id, n := range served {
				if n > served[first]+1 || len(served) == 3 && served[first] > n+1 {
					t.Fatalf("unfair after %v: %s", served, id)
				}
			}
			w.check()
		}
		wantEqual(t, "route", len(w.members(route)), 0)

		f := w.fan(4, "b")
		f.stage(rows{n: 2}, rows{n: 2, delay: 3_600_000})
		f.commit()
		_, c := f.claim(0, 9, long)
		wantEqual(t, "due", granted(c), "0-1")
		z := w.members(w.shard.Route(f.routes[0]))
		if len(z) != 1 || z[0].Score != w.members(f.keys.Due(0))[0].Score || c.Next != strconv.FormatInt(int64(z[0].Score), 10) {
			t.Errorf("the run waits at %v, next is %s", z, c.Next)
		}
		_, c = f.claim(0, 9, long)
		wantEqual(t, "too early", granted(c), "")
	})
}

// A route may still name a run that was closed, or one that is gone.
func TestClaimRemovesStaleEntries(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.started(4, 4, "a")
		must(w.s.Cancel(t.Context(), f.cancelCall()))(t)
		gone := w.fan(4, "a")
		live := w.started(4, 4, "a")
		for _, x := range []*fan{f, gone} {
			must(w.rdb.Do(t.Context(), "ZADD", w.shard.Route(f.routes[0]), 5, x.id).Result())(t)
			must(w.rdb.Do(t.Context(), "ZADD", w.shard.Ready(), 5, f.routes[0]).Result())(t)
			must(w.rdb.Do(t.Context(), "ZADD", x.keys.Due(0), 5, "00000000f00000003").Result())(t)
		}
		r := w.runClaim(w.claimCall(long, []Taker{{nonce(), 2, "w"}}, f.pair(0), gone.pair(0), live.pair(0)))
		for i, want := range []string{"", "", "0-1"} {
			wantEqual(t, "granted", granted(r.Pairs[i]), want)
		}
		z := w.members(w.shard.Route(f.routes[0]))
		if len(z) != 1 || z[0].Member != live.id {
			t.Errorf("route %v", z)
		}
		must(w.rdb.Del(t.Context(), f.keys.Due(0), gone.keys.Due(0)).Result())(t)
	})
}

// A budget that ends between two spans leaves the second as it is.
func TestClaimBudgetEndsBetweenSpans(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fan(4, "a")
		f.stage(rows{n: 4}, rows{n: 4, delay: 1})
		f.commit()
		w.pass(w.now() + 1)
		p := w.claimCall(long, []Taker{{nonce(), 100, "w"}}, f.pair(0))
		p.MaxChunks = 1
		wantEqual(t, "taken", granted(w.runClaim(p).Pairs[0]), "0-3")
		w.check()
		wantEqual(t, "left", f.spans(0), []string{"00000004f00000007@1"})
	})
}
