package lua

import (
	"testing"
)

func (f *fan) hold(nonce string, ordinals ...int64) Hold {
	k := f.keys
	return Hold{Run: k.Record(), Rows: k.Rows(), Cancelled: k.Cancelled(), Nonce: nonce, Ordinals: ordinals}
}

func (w *world) renew(holds ...Hold) []string {
	w.t.Helper()
	return must(w.s.Renew(w.ctx(), Renew{Claims: w.shard.Claims(), Leases: w.shard.Leases(), Holds: holds}))(w.t)
}

// deadline is when a claim's lease ends, 0 if there is no such claim.
func (w *world) deadline(nonce string) int64 {
	w.t.Helper()
	for _, z := range w.members(w.shard.Claims()) {
		if z.Member == nonce {
			return int64(z.Score)
		}
	}
	return 0
}

func TestRenew(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f, g := w.started(4, 10, "a"), w.started(4, 4, "a")
		n, m := f.take(0, 6, long, "0-5"), g.take(0, 4, long, "0-3")
		before := w.deadline(n)
		w.pass(w.now() + 1)
		f.settle(group(Complete, n, 0), group(Requeue, n, 1), group(CancelIt, "", 2))
		wantEqual(t, "states", w.renew(f.hold(n, 0, 1, 2, 3, 4, 5, 9), g.hold(m, 3, 2)), []string{"llchhhl", "hh"})
		if now := w.now(); w.deadline(n) <= before || w.deadline(n) > now+long {
			t.Errorf("the lease ended at %d, now at %d", before, w.deadline(n))
		}
		wantEqual(t, "lease", f.field(w.shard.Leases(), n)[:1], "1")
		w.check()

		// who holds nothing moves nothing
		deadline := w.deadline(m)
		wantEqual(t, "another's", w.renew(f.hold(m, 3, 4)), []string{"ll"})
		wantEqual(t, "nobody's", w.renew(g.hold("none", 0)), []string{"l"})
		wantEqual(t, "deadline", w.deadline(m), deadline)
		w.check()

		must(w.s.Cancel(t.Context(), f.cancelCall()))(t)
		wantEqual(t, "cancelled run", w.renew(f.hold(n, 3, 4, 5)), []string{"ccc"})
		wantEqual(t, "a page", w.renew(g.hold(m, seq(0, 999)...))[0][:5], "hhhhl")
	})
}

// Nothing is renewed that has lapsed and was swept.
func TestRenewAfterTheLapse(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.started(4, 2, "a")
		n := f.take(0, 2, 1, "0-1")
		w.pass(w.deadline(n))
		wantEqual(t, "not swept yet", w.renew(f.hold(n, 0, 1)), []string{"hh"})
		w.pass(w.deadline(n))
		p := f.settleCall(group(Requeue, n, 0, 1))
		p.Lapse = n
		if r := f.runSettle(p); r.Outcome != "ok" || len(r.Exceptions) > 0 {
			t.Fatalf("lapse: %+v", r)
		}
		wantEqual(t, "swept", w.renew(f.hold(n, 0, 1)), []string{"ll"})
		wantEqual(t, "deadline", w.deadline(n), int64(0))
	})
}

func TestDeliver(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.started(4, 6, "a")
		n, m, o := f.take(0, 2, long, "0-1"), f.take(0, 2, long, "2-3"), f.take(0, 2, long, "4-5")
		before := f.field(w.shard.Leases(), n)
		for range 2 {
			if err := w.s.Deliver(t.Context(), w.shard.Leases(), []string{n, "none", m}); err != nil {
				t.Fatal(err)
			}
			wantEqual(t, "lease", f.field(w.shard.Leases(), n), "1"+before[1:])
		}
		wantEqual(t, "m", f.field(w.shard.Leases(), m)[:1], "1")
		wantEqual(t, "o", f.field(w.shard.Leases(), o)[:1], "0")
		wantEqual(t, "none", f.field(w.shard.Leases(), "none"), "")
		w.check()
		// a report delivers too; one from outside does not
		f.settle(group(Complete, "", 5))
		wantEqual(t, "o", f.field(w.shard.Leases(), o)[:1], "0")
		g := w.started(4, 3, "b")
		c := g.take(0, 3, long, "0-2")
		g.settle(group(Complete, c, 0))
		wantEqual(t, "reported", f.field(w.shard.Leases(), c)[:1], "1")
	})
}
