package lua

import (
	"testing"

	"github.com/umbelhq/umbel/internal/testredis"
)

// forget empties the servers' caches of scripts.
func (w *world) forget() {
	w.t.Helper()
	must(w.rdb.ScriptFlush(w.ctx()).Result())(w.t)
}

// CASE 13: whenever a server forgets the scripts, no caller sees it.
func TestNoScriptAlone(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fan(4, "a")
		for range 3 {
			w.forget()
			f.stage(rows{n: 2})
		}
		w.forget()
		f.commit()
		w.forget()
		n := f.take(0, 4, long, "0-3")
		w.forget()
		wantEqual(t, "renew", w.renew(f.hold(n, 0, 1)), []string{"hh"})
		w.forget()
		if err := w.s.Deliver(t.Context(), w.shard.Leases(), []string{n}); err != nil {
			t.Error(err)
		}
		w.forget()
		w.sweep(noGap)
		w.forget()
		f.settle(group(Complete, n, 0, 1))
		w.forget()
		must(w.s.Cancel(t.Context(), f.cancelCall()))(t)
	})
}

func TestNoScriptInOnePipeline(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f, g := w.started(4, 6, "a"), w.started(4, 6, "b")
		n, m := f.take(0, 3, long, "0-2"), g.take(0, 3, long, "0-2")
		all := func(calls ...Settle) {
			t.Helper()
			var cs []Call
			for _, c := range calls {
				cs = append(cs, c.Call())
			}
			replies, errs := w.s.RunAll(t.Context(), cs)
			for i := range calls {
				if errs[i] != nil {
					t.Fatal(errs[i])
				}
				if r := must(ParseSettle(replies[i]))(t); r.Outcome != "ok" || len(r.Exceptions) > 0 {
					t.Errorf("%d: %+v", i, r)
				}
			}
			w.check()
		}
		w.forget()
		all(f.settleCall(group(Complete, n, 0)), g.settleCall(group(Complete, m, 0)))
		all(f.settleCall(group(Complete, n, 1)), g.settleCall(group(Complete, m, 1)))
		w.forget()
		all(f.settleCall(group(Complete, n, 2)))
		all()
	})
}

func TestNoScriptInOrder(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		for _, known := range []string{"none", "stage", "commit", "both"} {
			f := w.fan(4, "a")
			first := f.stageCall(0, rows{n: 3})
			f.view = first.After
			second := f.stageCall(3, rows{n: 3})
			f.next = 6
			if known != "both" {
				w.forget()
			}
			switch known {
			case "stage":
				w.fan(4, "z").stage(rows{n: 1})
			case "commit":
				w.fan(4).commit()
			}
			replies := must(w.s.RunInOrder(t.Context(), []Call{first.Call(), second.Call(), f.commitCall().Call()}))(t)
			for i, r := range replies {
				if r.Outcome != "ok" {
					t.Errorf("%s known: reply %d is %s", known, i, r.Outcome)
				}
			}
			wantEqual(t, "replies", len(replies), 3)
			w.check()
			wantEqual(t, "inputs", f.chunks(), map[string]string{"0": "<0><1><2><3>", "1": "<4><5>"})
		}
	})
}

// An error in the middle: what came before it is returned with it.
func TestInOrderStopsAtAnError(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fan(4, "a")
		good := f.stageCall(0, rows{n: 1})
		bad := good.Call()
		bad.args = append([]any{}, bad.args...)
		bad.args[1] = "no number"
		bad.keys = w.fan(4, "a").stageCall(0).Call().keys
		replies, err := w.s.RunInOrder(t.Context(), []Call{good.Call(), bad, good.Call()})
		if err == nil || len(replies) != 1 || replies[0].Outcome != "ok" {
			t.Errorf("%+v, %v", replies, err)
		}
		many, errs := w.s.RunAll(t.Context(), []Call{bad, good.Call()})
		if errs[0] == nil || errs[1] != nil || many[1].Outcome != "again" {
			t.Errorf("%+v, %v", many, errs)
		}
	})
}

// The same after a restart, which keeps data and forgets scripts.
func TestNoScriptAfterARestart(t *testing.T) {
	t.Parallel()
	r := testredis.Real(t, testredis.AppendOnly("always"))
	w := newWorld(t, r)
	f := w.started(4, 6, "a")
	n := f.take(0, 3, long, "0-2")
	before := f.dumpAll()
	r.Restart(t)
	wantEqual(t, "state", f.dumpAll(), before)
	f.settle(group(Complete, n, 0))
	r.Restart(t)
	replies, errs := w.s.RunAll(t.Context(), []Call{
		f.settleCall(group(Complete, n, 1)).Call(), f.settleCall(group(Complete, n, 2)).Call(),
	})
	for i := range replies {
		if errs[i] != nil || replies[i].Outcome != "ok" {
			t.Errorf("%+v, %v", replies[i], errs[i])
		}
	}
	w.check()
	wantEqual(t, "completed", f.field(f.keys.Record(), "completed"), "3")
}
