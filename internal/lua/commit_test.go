package lua

import (
	"testing"
)

func TestCommit(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fan(4, "a", "b")
		f.stage(rows{n: 3}, rows{n: 2, route: 1, delay: 60_000})
		f.commit()
		w.check()
		record := must(w.rdb.HGetAll(t.Context(), f.keys.Record()).Result())(t)
		for field, want := range map[string]string{
			"status": "running", "ns": namespace, "wf": f.wf, "n": "5", "k": "4", "type": "text/plain", "auto": "1",
			"types": "[]", "nroutes": "2", "routes": f.routes[0] + "\n" + f.routes[1], "p0": "3", "p1": "2", "bytes": "15",
			"next": "", "tail": "", "large": "", "closed": "",
		} {
			if record[field] != want {
				t.Errorf("%s is %q, want %q", field, record[field], want)
			}
		}
		wantEqual(t, "workflow", must(w.rdb.HGetAll(t.Context(), f.wfKeys.Record).Result())(t),
			map[string]string{"run": f.id, "head": "11", "digest": "digest\x00", "n": "5"})
		entries := f.history()
		wantEqual(t, "history", entries, []string{"1-1 e started;", "2-10 d 0 5 " + f.id})
		wantEqual(t, "backlog", must(w.rdb.HGetAll(t.Context(), w.shard.Backlog()).Result())(t),
			map[string]string{f.routes[0]: "3", f.routes[1]: "2"})
		if z := w.members(w.shard.Route(f.routes[1])); len(z) != 1 || z[0].Score != w.members(f.keys.Due(1))[0].Score {
			t.Errorf("a delayed route waits at %v", z)
		}

		before := f.dumpAll()
		if r := f.runCommit(f.commitCall()); r.Outcome != "again" || r.Rows != 5 {
			t.Errorf("again: %+v", r)
		}
		other := w.fan(4, "a")
		other.wf, other.wfKeys = f.wf, f.wfKeys
		other.stage(rows{n: 1})
		if r := other.runCommit(other.commitCall()); r.Outcome != "exists" || r.Run != f.id || r.Rows != 5 || r.Digest != "digest\x00" {
			t.Errorf("another run: %+v", r)
		}
		wantEqual(t, "the first run", f.dumpAll(), before)
		w.fans = w.fans[:1]
	})
}

// Promise 1: what is refused leaves nothing.
func TestCommitRefuses(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fan(4, "a", "b")
		f.stage(rows{n: 3}, rows{n: 1, route: 1})
		before := f.dumpAll()
		for name, c := range map[string]struct {
			change  func(p *Commit)
			outcome string
			number  int64
		}{
			"too few rows":   {func(p *Commit) { p.Rows = 5 }, "lost", 4},
			"too many rows":  {func(p *Commit) { p.Rows = 3 }, "lost", 4},
			"other rows":     {func(p *Commit) { p.Sum = "theirs" }, "other", 4},
			"old routes":     {func(p *Commit) { p.Routes = p.Routes[:1] }, "routes", 2},
			"a full history": {func(p *Commit) { p.MaxSeq = 10 }, "full", 0},
		} {
			p := f.commitCall()
			c.change(&p)
			if r := f.runCommit(p); r.Outcome != c.outcome || r.Number != c.number {
				t.Errorf("%s: %+v, want %s %d", name, r, c.outcome, c.number)
			}
			wantEqual(t, name+": state", f.dumpAll(), before)
		}
		p := f.commitCall()
		p.MaxSeq = 2*4 + 3
		if r := f.runCommit(p); r.Outcome != "ok" {
			t.Errorf("with just enough numbers: %+v", r)
		}
	})
}

// A server whose maxmemory-policy evicts keys with a TTL may take a part of what is staged.
func TestCommitNoticesEviction(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		for i := range 3 {
			f := w.fan(4, "a", "b")
			f.stage(rows{n: 3}, rows{n: 1, route: 1})
			must(w.rdb.Del(t.Context(), []string{f.keys.Inputs(), f.keys.Due(0), f.keys.Due(1)}[i]).Result())(t)
			before := f.dumpAll()
			if r := f.runCommit(f.commitCall()); r.Outcome != "lost" {
				t.Errorf("%d: %+v", i, r)
			}
			wantEqual(t, "state", f.dumpAll(), before)
		}
	})
}

func TestCommitWithoutRows(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fan(4)
		f.commit()
		wantEqual(t, "history", f.history(), []string{"1-1 e started;", "2-2 e decided;closed;"})
		wantEqual(t, "status", f.status(), "completed")
		if f.field(f.keys.Record(), "closed") == "" {
			t.Error("it was never closed")
		}
		if r := f.runCommit(f.commitCall()); r.Outcome != "again" || r.Rows != 0 {
			t.Errorf("again: %+v", r)
		}
		if r := must(w.s.Cancel(t.Context(), f.cancelCall()))(t); r.Outcome != "closed" || r.Status != "completed" {
			t.Errorf("cancel: %+v", r)
		}
	})
}

// A history that a server continues after a run from outside.
func TestCommitGoesOnAtTheHead(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fan(4, "a")
		f.token("me")
		if r := must(w.s.Append(t.Context(), f.appendCall(Fence{Token: "me"}, "x;")))(t); r.Outcome != "ok" || r.Head != 1 {
			t.Fatalf("append: %+v", r)
		}
		f.stage(rows{n: 1})
		f.commit()
		wantEqual(t, "history", f.history(), []string{"1-1 e x;", "2-1 e started;", "3-2 d 0 1 " + f.id})
	})
}

// What was staged in one call, and nothing since, is known again by its checksum.
func TestCommitOfACertainStaging(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		for i, c := range []struct{ staged, more, want, outcome string }{
			{"x", "", "x", "ok"}, {"x", "", "", "ok"}, {"x", "", "y", "other"}, {"", "", "x", "other"},
			{"x", "x", "x", "other"}, {"x", "y", "y", "other"}, {"x", "x", "", "ok"},
		} {
			f := w.fan(4, "a")
			p := f.stageCall(0, rows{n: 2})
			p.Sum = c.staged
			must(w.s.Stage(t.Context(), p))(t)
			f.next, f.view = 2, p.After
			if c.more != "" {
				p = f.stageCall(2, rows{n: 1})
				p.Sum = c.more
				must(w.s.Stage(t.Context(), p))(t)
				f.next = 3
			}
			call := f.commitCall()
			call.Sum = c.want
			if r := f.runCommit(call); r.Outcome != c.outcome {
				t.Errorf("%d: %+v, want %s", i, r, c.outcome)
			}
			if sum := f.field(f.keys.Record(), "sum"); c.outcome == "ok" && sum != "" {
				t.Errorf("%d: the run keeps the checksum %q", i, sum)
			}
		}
	})
}
