package lua

import (
	"strconv"
	"strings"
)

// check wants what holds after every step, for every run of the world.
func (w *world) check() {
	w.t.Helper()
	backlog, held := map[string]int64{}, map[string]int64{}
	closed := map[string]bool{}
	for _, f := range w.fans {
		f.checkRun(backlog, held)
		if s := f.status(); s != "running" {
			closed[f.id] = true
		}
	}
	for route, text := range must(w.rdb.HGetAll(w.ctx(), w.shard.Backlog()).Result())(w.t) {
		if n, _ := strconv.ParseInt(text, 10, 64); n != backlog[route] {
			w.t.Errorf("backlog of %s is %d, runs have %d pending", route, n, backlog[route])
		}
		delete(backlog, route)
	}
	for route, n := range backlog {
		if n != 0 {
			w.t.Errorf("backlog of %s is absent, runs have %d pending", route, n)
		}
	}
	w.checkClaims(held, closed)
	w.checkRoutes()
	w.checkList()
}

// checkList wants every run in the list of all and in that of its status, and nothing else there.
func (w *world) checkList() {
	w.t.Helper()
	want := map[string]bool{}
	for _, f := range w.fans {
		letter := map[string]string{"running": "r", "completed": "c", "failed": "f", "cancelled": "x"}[f.status()]
		if letter == "" {
			continue
		}
		started := f.field(f.keys.Record(), "started")
		want["a"+strings.Repeat("0", 15-len(started))+started+f.id] = true
		want[letter+strings.Repeat("0", 15-len(started))+started+f.id] = true
	}
	for _, z := range w.members(w.shard.Runs(namespace)) {
		m := z.Member.(string)
		if !want[m] || z.Score != 0 {
			w.t.Errorf("the list of runs has %q with score %v", m, z.Score)
		}
		delete(want, m)
	}
	for m := range want {
		w.t.Errorf("the list of runs lacks %q", m)
	}
}

func (f *fan) checkRun(backlog, held map[string]int64) {
	f.t.Helper()
	run := must(f.rdb.HGetAll(f.ctx(), f.keys.Record()).Result())(f.t)
	num := func(field string) int64 { n, _ := strconv.ParseInt(run[field], 10, 64); return n }
	if run["status"] == "" || run["status"] == "staging" {
		return
	}
	var fresh, singles, pending, parked int64
	for r, route := range f.routes {
		p := num("p" + strconv.Itoa(r))
		pending += p
		backlog[route] += p
		members := f.members(f.keys.Due(r))
		for _, z := range members {
			m := z.Member.(string)
			a, _ := strconv.ParseInt(m[:8], 10, 64)
			if m[8] == 'r' {
				singles++
				continue
			}
			b, _ := strconv.ParseInt(m[9:], 10, 64)
			fresh += b - a + 1
		}
		if len(members) > 0 && f.rdb.ZScore(f.ctx(), f.shard.Route(route), f.id).Err() != nil {
			f.t.Errorf("run %s has rows on route %d and does not wait there", f.wf, r)
		}
	}
	records := must(f.rdb.HGetAll(f.ctx(), f.keys.Rows()).Result())(f.t)
	for o, rec := range records {
		switch rec[0] {
		case 'C':
			held[rec[5:31]]++
		case 'P':
			parked++
		default:
			f.t.Errorf("row %s of %s has the record %q", o, f.wf, rec)
		}
	}
	count := func(key string) int64 { f.t.Helper(); return must(f.rdb.BitCount(f.ctx(), key, nil).Result())(f.t) }
	n, resolved := num("n"), count(f.keys.Resolved())
	if got := fresh - num("holes") + int64(len(records)) + resolved; got != n {
		f.t.Errorf("run %s: %d in spans − %d holes + %d records + %d resolved = %d, want n = %d",
			f.wf, fresh, num("holes"), len(records), resolved, got, n)
	}
	if singles != parked {
		f.t.Errorf("run %s: %d single members, %d records of pending rows", f.wf, singles, parked)
	}
	if got := fresh - num("holes") + singles; got != pending {
		f.t.Errorf("run %s: %d rows are pending, counters say %d", f.wf, got, pending)
	}
	if got := num("completed") + num("failed") + num("cancelled"); got != resolved {
		f.t.Errorf("run %s: counts make %d, %d are resolved", f.wf, got, resolved)
	}
	if got := count(f.keys.Failed()); got != num("failed") {
		f.t.Errorf("run %s: %d failed by the bitmap, %d by the count", f.wf, got, num("failed"))
	}
	if got := count(f.keys.Cancelled()) + count(f.keys.Rest()); got != num("cancelled") {
		f.t.Errorf("run %s: %d cancelled by the bitmaps, %d by the count", f.wf, got, num("cancelled"))
	}
	if run["status"] != "running" && (resolved != n || pending != 0 || len(records) != 0) {
		f.t.Errorf("run %s is %s with %d of %d resolved, %d pending and %d records",
			f.wf, run["status"], resolved, n, pending, len(records))
	}
	f.checkHistory()
}

// checkHistory wants a history without a gap that ends at the head.
func (f *fan) checkHistory() {
	f.t.Helper()
	next := int64(0)
	for _, e := range must(f.rdb.XRange(f.ctx(), f.wfKeys.History, "-", "+").Result())(f.t) {
		first, count, _ := strings.Cut(e.ID, "-")
		a, _ := strconv.ParseInt(first, 10, 64)
		c, _ := strconv.ParseInt(count, 10, 64)
		if next != 0 && a != next {
			f.t.Errorf("history of %s goes on at %d, want %d", f.wf, a, next)
		}
		next = a + c
	}
	if head := f.field(f.wfKeys.Record, "head"); next != 0 && head != strconv.FormatInt(next-1, 10) {
		f.t.Errorf("history of %s ends at %d, the head is %s", f.wf, next-1, head)
	}
}

// checkClaims wants a lease for every claim, and as many rows left as it holds.
func (w *world) checkClaims(held map[string]int64, closed map[string]bool) {
	w.t.Helper()
	leases := must(w.rdb.HGetAll(w.ctx(), w.shard.Leases()).Result())(w.t)
	for _, z := range w.members(w.shard.Claims()) {
		nonce := z.Member.(string)
		rec, ok := leases[nonce]
		if !ok {
			w.t.Errorf("claim %s has no lease", nonce)
			continue
		}
		run := strings.Split(rec, "\n")[1]
		left, _ := strconv.ParseInt(leases[nonce+":n"], 10, 64)
		if left != held[nonce] && !closed[run] {
			w.t.Errorf("claim %s has %d rows left, %d records name it", nonce, left, held[nonce])
		}
		delete(leases, nonce)
		delete(leases, nonce+":n")
		delete(held, nonce)
	}
	for field := range leases {
		w.t.Errorf("leases has %s, which is no claim", field)
	}
	for nonce, n := range held {
		w.t.Errorf("%d records name the claim %s, which is none", n, nonce)
	}
}

// checkRoutes wants every route to stand in ready with the instant of its first run.
func (w *world) checkRoutes() {
	w.t.Helper()
	ready := map[string]float64{}
	for _, z := range w.members(w.shard.Ready()) {
		ready[z.Member.(string)] = z.Score
	}
	seen := map[string]bool{}
	for _, f := range w.fans {
		for _, route := range f.routes {
			if seen[route] {
				continue
			}
			seen[route] = true
			runs := w.members(w.shard.Route(route))
			score, ok := ready[route]
			if ok != (len(runs) > 0) || ok && runs[0].Score != score {
				w.t.Errorf("route %s is ready at %v (%v), its runs are %v", route, score, ok, runs)
			}
			delete(ready, route)
		}
	}
	for route := range ready {
		w.t.Errorf("ready has the route %s, which no run has", route)
	}
}
