package lua

import (
	"strconv"
	"testing"
)

func (w *world) sweep(gap int64) SweepReply {
	w.t.Helper()
	return must(w.s.Sweep(w.ctx(), w.sweepCall(gap)))(w.t)
}

func (r SweepReply) nonces() []string {
	out := []string{}
	for _, l := range r.Lapsed {
		out = append(out, l.Nonce)
	}
	return out
}

const noGap = int64(1) << 40 // ms between sweeps that no test waits

func TestSweep(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.started(4, 10, "a")
		first := w.sweep(noGap)
		if first.Gap != first.Now {
			t.Errorf("the first sweep comes after a gap: %+v", first)
		}
		w.pass(first.Now)
		n := f.take(0, 2, 20, "0-1")
		f.take(0, 2, long, "2-3")
		if r := w.sweep(noGap); len(r.Lapsed) > 0 && r.Now < w.deadline(n) {
			t.Errorf("too early: %+v", r)
		}
		w.pass(max(w.deadline(n), first.Now+20))
		r := w.sweep(noGap)
		wantEqual(t, "lapsed", r.nonces(), []string{n})
		wantEqual(t, "record", r.Lapsed[0].Record, f.field(w.shard.Leases(), n))
		wantEqual(t, "gap", r.Gap, first.Gap)
		wantEqual(t, "it stays until it is settled", w.sweep(noGap).nonces(), []string{n})
		f.settle(group(Requeue, n, 0, 1))
		wantEqual(t, "settled", w.sweep(noGap).nonces(), []string{})
		w.check()
	})
}

// After a gap, of sweeps or of the clock, every claim gets one more lease from then on. Promise 13: nobody
// pays for leases that could not be renewed.
func TestSweepAfterAGap(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		const lease = 60
		f := w.started(4, 10, "a")
		for name, gap := range map[string]func() int64{
			"nobody swept": func() int64 {
				must(w.rdb.HSet(t.Context(), w.shard.Sweep(), "last", w.now()-1000).Result())(t)
				return 900
			},
			"the clock went back": func() int64 {
				must(w.rdb.HSet(t.Context(), w.shard.Sweep(), "last", w.now()+1000).Result())(t)
				return noGap
			},
			"the shard is new": func() int64 {
				must(w.rdb.Del(t.Context(), w.shard.Sweep()).Result())(t)
				return noGap
			},
		} {
			n := f.take(0, 1, lease, f.nextSpan())
			w.pass(w.deadline(n))
			r := w.sweep(gap())
			wantEqual(t, name, r.nonces(), []string{})
			wantEqual(t, name+": gap", r.Gap, r.Now)
			wantEqual(t, name+": deadline", w.deadline(n), r.Now+lease)
			w.pass(w.deadline(n))
			r = w.sweep(noGap)
			wantEqual(t, name+": later", r.nonces(), []string{n})
			f.resolve(f.rowsOf(r.Lapsed[0])...)
			w.check()
		}
	})
}

// nextSpan is the first ordinal that is fresh, as a claim of one names it.
func (f *fan) nextSpan() string {
	f.t.Helper()
	first, _ := strconv.Atoi(f.members(f.keys.Due(0))[0].Member.(string)[:8])
	return strconv.Itoa(first) + "-" + strconv.Itoa(first)
}

// A claim that waits for its extra lease does not stand before those that have lapsed.
func TestSweepSeesBehindLongLeases(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.started(4, 10, "a")
		var leases []string
		for o := range 4 {
			n := f.take(0, 1, long, strconv.Itoa(o)+"-"+strconv.Itoa(o))
			must(w.rdb.Do(t.Context(), "ZADD", w.shard.Claims(), 1, n).Result())(t) // as if the lease had ended
			leases = append(leases, n)
		}
		short := f.take(0, 1, 1, "4-4")
		p := w.sweepCall(noGap)
		p.Most = 2
		r := must(w.s.Sweep(t.Context(), p))(t)
		w.pass(max(w.deadline(short), r.Now+1))
		for range 3 {
			if r = must(w.s.Sweep(t.Context(), p))(t); len(r.Lapsed) > 0 {
				break
			}
		}
		wantEqual(t, "lapsed", r.nonces(), []string{short})
		for _, n := range leases {
			wantEqual(t, "deadline", w.deadline(n), r.Gap+long)
		}
	})
}

// What is left of a claim without a lease is named too, so that it can be removed.
func TestSweepNamesClaimsWithoutALease(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		must(w.rdb.Do(t.Context(), "ZADD", w.shard.Claims(), 1, "stray").Result())(t)
		r := w.sweep(noGap)
		if len(r.Lapsed) != 1 || r.Lapsed[0] != (Lapsed{Nonce: "stray"}) {
			t.Errorf("%+v", r)
		}
		must(w.rdb.Del(t.Context(), w.shard.Claims()).Result())(t)
	})
}
