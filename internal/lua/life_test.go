package lua

import (
	"testing"
)

// One life of a run, through every script.
func TestLife(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fan(4, "a", "b")
		f.stage(rows{n: 6}, rows{n: 3, route: 1}, rows{n: 1, delay: 3_600_000})
		f.stage(rows{n: 4})
		f.commit()
		w.check()
		n := f.take(0, 4, long, "0-3")
		w.check()
		states := must(w.s.Renew(t.Context(), Renew{
			Claims: w.shard.Claims(), Leases: w.shard.Leases(),
			Holds: []Hold{{Run: f.keys.Record(), Rows: f.keys.Rows(), Cancelled: f.keys.Cancelled(), Nonce: n, Ordinals: seq(0, 4)}},
		}))(t)
		if states[0] != "hhhhl" {
			t.Errorf("renew: %q", states)
		}
		if err := w.s.Deliver(t.Context(), w.shard.Leases(), []string{n}); err != nil {
			t.Error(err)
		}
		must(w.s.Sweep(t.Context(), w.sweepCall(1000)))(t)
		if s := f.settle(group(Complete, n, 0), group(Fail, n, 1), group(Requeue, n, 2)); s != "running" {
			t.Errorf("status %s", s)
		}
		w.check()
		f.take(0, 2, long, "4-5")
		w.check()
		if r := must(w.s.Cancel(t.Context(), f.cancelCall()))(t); r.Outcome != "ok" || r.Cancelled != 12 {
			t.Errorf("cancel: %+v", r)
		}
		w.check()
	})
}

// One life of a run that is written from outside.
func TestLifeFromOutside(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fan(4, "a", "b")
		f.token("me")
		head := int64(0)
		for range 2 {
			s := f.staging()
			s.stage(rows{n: 3}, rows{n: 3, route: 1})
			r := must(w.s.Dispatch(t.Context(), f.dispatchCall(s, Fence{Token: "me", Head: head})))(t)
			if head += 12; r.Outcome != "ok" || r.Number != head {
				t.Fatalf("dispatch: %+v", r)
			}
			f.next = s.next
			w.check()
		}
		a := must(w.s.Append(t.Context(), Append{
			Workflow: f.wfKeys.Record, History: f.wfKeys.History, Fence: Fence{Token: "me", Head: head}, Count: 2,
			Events: []byte("a;b;"), MaxSeq: maxSeq,
		}))(t)
		if a.Outcome != "ok" || a.Head != head+2 {
			t.Fatalf("append: %+v", a)
		}
		n := f.take(0, 10, long, "0-2,6-8")
		if s := f.settle(group(Complete, n, 0, 1, 2, 6, 7, 8)); s != "running" {
			t.Errorf("status %s", s)
		}
	})
}
