package lua

import (
	"strconv"
	"testing"
)

func (f *fan) dispatch(from *fan, fence Fence) DispatchReply {
	f.t.Helper()
	r := must(f.s.Dispatch(f.ctx(), f.dispatchCall(from, fence)))(f.t)
	if r.Outcome == "ok" {
		f.next = from.next
	}
	return r
}

func (f *fan) chunks() map[string]string {
	f.t.Helper()
	return must(f.rdb.HGetAll(f.ctx(), f.keys.Inputs()).Result())(f.t)
}

func TestDispatchOpensARun(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fan(4, "a", "b")
		s := f.staging()
		s.stage(rows{n: 5}, rows{n: 1, route: 1})
		if r := f.dispatch(s, Fence{}); r.Outcome != "ok" || r.Number != 12 {
			t.Fatalf("%+v", r)
		}
		w.check()
		record := must(w.rdb.HGetAll(t.Context(), f.keys.Record()).Result())(t)
		for field, want := range map[string]string{
			"status": "running", "ns": namespace, "wf": f.wf, "n": "6", "k": "4", "type": "text/plain", "auto": "0",
			"nroutes": "2", "p0": "5", "p1": "1", "bytes": "18", "large": "",
		} {
			if record[field] != want {
				t.Errorf("%s is %q, want %q", field, record[field], want)
			}
		}
		wantEqual(t, "history", f.history(), []string{"1-12 d 0 6 " + f.id})
		wantEqual(t, "inputs", f.chunks(), map[string]string{"0": "<0><1><2><3>", "1": "<4><5>"})
		wantEqual(t, "staging", s.dump(s.keys.Record(), s.keys.Inputs(), s.keys.Due(0), s.keys.Due(1)), map[string]any{})
		for _, key := range []string{f.keys.Record(), f.keys.Inputs(), f.keys.Due(0), f.keys.Due(1), f.wfKeys.Record, f.wfKeys.History} {
			if ttl := must(w.rdb.PTTL(t.Context(), key).Result())(t); ttl != -1 {
				t.Errorf("%s expires: %v", key, ttl)
			}
		}
	})
}

func TestDispatchAddsToARun(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fan(4, "a")
		s := f.staging()
		s.stage(rows{n: 6})
		f.dispatch(s, Fence{})
		f.take(0, 2, long, "0-1")
		f.large[9] = true
		s = f.staging()
		s.large = f.large
		f.routes = append(f.routes, w.fan(4, "b").routes[0]) // a route that the run has not had
		s.routes = f.routes
		s.stage(rows{n: 1, delay: 5000}, rows{n: 3}, rows{n: 2, route: 1})
		if r := f.dispatch(s, Fence{}); r.Outcome != "ok" || r.Number != 24 {
			t.Fatalf("%+v", r)
		}
		w.check()
		wantEqual(t, "inputs", f.chunks(), map[string]string{
			"0": "<0><1><2><3>", "1": "<4><5><6><7>", "2": "<8>L<10><11>", "b9": "<9>",
		})
		wantEqual(t, "members", len(f.members(f.keys.Due(0))), 3)
		wantEqual(t, "fields", w.dump(f.keys.Record())[f.keys.Record()].(map[string]string)["large"], "1")
		wantEqual(t, "bytes", f.field(f.keys.Record(), "bytes"), strconv.Itoa(6*3+4*3+2*4))
		wantEqual(t, "history", f.history(), []string{"1-12 d 0 6 " + f.id, "13-12 d 6 6 " + f.id})
		f.take(0, 10, long, "2-5,7-9")
		f.take(1, 10, long, "10-11")
	})
}

// More fields than a page of HSCAN has, in a hash that Redis keeps as a table.
func TestDispatchMovesManyChunks(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fan(3, "a")
		for _, n := range []int{4, 4000} {
			s := f.staging()
			for left := n; left > 0; left -= 1000 {
				s.stage(rows{n: min(left, 1000)})
			}
			if r := f.dispatch(s, Fence{}); r.Outcome != "ok" {
				t.Fatalf("%+v", r)
			}
		}
		chunks := f.chunks()
		for c := range int64(1334) {
			want := f.input(3*c) + f.input(3*c+1) + f.input(3*c+2)
			if got := chunks[strconv.FormatInt(c, 10)]; got != want {
				t.Fatalf("chunk %d is %q, want %q", c, got, want)
			}
		}
		wantEqual(t, "chunks", len(chunks), 1335)
	})
}

func TestDispatchRowsWithoutEvents(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fan(4, "a")
		s := f.staging()
		s.stage(rows{n: 2})
		p := f.dispatchCall(s, Fence{})
		p.Events = false
		if r := must(w.s.Dispatch(t.Context(), p))(t); r.Outcome != "ok" || r.Number != 0 {
			t.Fatalf("%+v", r)
		}
		wantEqual(t, "history", len(f.history()), 0)
		f.take(0, 2, long, "0-1")
	})
}

// Promises 1 and 8: what is refused leaves everything as it was.
func TestDispatchRefuses(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fan(4, "a")
		f.token("me")
		s := f.staging()
		s.stage(rows{n: 2})
		if r := f.dispatch(s, Fence{Token: "me"}); r.Outcome != "ok" {
			t.Fatalf("%+v", r)
		}
		s = f.staging()
		s.stage(rows{n: 2})
		fence := Fence{Token: "me", Head: 4}
		staged := []string{s.keys.Record(), s.keys.Inputs(), s.keys.Due(0)}
		before, before2 := f.dumpAll(), w.dump(staged...)
		for name, c := range map[string]struct {
			change  func(p *Dispatch)
			outcome string
			number  int64
			text    string
		}{
			"another token":  {func(p *Dispatch) { p.Fence.Token = "you" }, "fenced", 0, ""},
			"another head":   {func(p *Dispatch) { p.Fence.Head = 3 }, "conflict", 4, ""},
			"another n":      {func(p *Dispatch) { p.Base, p.Count = 1, 3 }, "moved", 2, ""},
			"another run":    {func(p *Dispatch) { p.ID = "other" }, "run", 0, f.id},
			"more rows":      {func(p *Dispatch) { p.Count = 3 }, "lost", 4, ""},
			"no staging":     {func(p *Dispatch) { p.Staged = f.keys.Index() }, "lost", 0, ""},
			"more routes":    {func(p *Dispatch) { p.Routes = append(p.Routes, p.Routes[0]) }, "lost", 4, ""},
			"a full history": {func(p *Dispatch) { p.MaxSeq = 7 }, "full", 4, ""},
		} {
			p := f.dispatchCall(s, fence)
			c.change(&p)
			r := must(w.s.Dispatch(t.Context(), p))(t)
			if r.Outcome != c.outcome || r.Number != c.number || r.Text != c.text {
				t.Errorf("%s: %+v, want %s %d %q", name, r, c.outcome, c.number, c.text)
			}
			wantEqual(t, name+": state", f.dumpAll(), before)
			wantEqual(t, name+": staging", w.dump(staged...), before2)
		}
		w.check()
		if r := must(w.s.Cancel(t.Context(), f.cancelCall()))(t); r.Outcome != "ok" {
			t.Fatalf("cancel: %+v", r)
		}
		if r := f.dispatch(s, Fence{}); r.Outcome != "closed" || r.Text != "cancelled" {
			t.Errorf("a closed run: %+v", r)
		}
	})
}

// A run that a server started takes no rows from outside, open or not.
func TestDispatchToAServersRun(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.started(4, 2, "a")
		s := f.staging()
		s.stage(rows{n: 2})
		if r := f.dispatch(s, Fence{}); r.Outcome != "closed" || r.Text != "running" {
			t.Errorf("%+v", r)
		}
	})
}

// The reply was lost on the way and the call is repeated: the rows are there once, and the caller is told so.
func TestDispatchAgain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fan(4, "a")
		f.token("me")
		s := f.staging()
		s.stage(rows{n: 2})
		p := f.dispatchCall(s, Fence{Token: "me"})
		for range 3 {
			if r := must(w.s.Dispatch(t.Context(), p))(t); r.Outcome != "ok" || r.Number != 4 {
				t.Fatalf("%+v", r)
			}
			w.check()
		}
		wantEqual(t, "history", f.history(), []string{"1-4 d 0 2 " + f.id})
		f.next = s.next
		s = f.staging()
		s.stage(rows{n: 1})
		if r := f.dispatch(s, Fence{Token: "me", Head: 4}); r.Outcome != "ok" || r.Number != 6 {
			t.Fatalf("%+v", r)
		}
	})
}

func TestDispatchNoticesEviction(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fan(4, "a")
		for i := range 2 {
			s := f.staging()
			s.stage(rows{n: 3})
			must(w.rdb.Del(t.Context(), []string{s.keys.Inputs(), s.keys.Due(0)}[i]).Result())(t)
			before := f.dumpAll()
			if r := f.dispatch(s, Fence{}); r.Outcome != "lost" {
				t.Errorf("%d: %+v", i, r)
			}
			wantEqual(t, "state", f.dumpAll(), before)
		}
	})
}

// A run that adds rows while others wait keeps its place: its old rows do not bring it to the front once more.
func TestDispatchKeepsTheRunsPlace(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f, other := w.fan(4, "a"), w.fan(4, "a")
		for _, x := range []*fan{f, other} {
			s := x.staging()
			s.stage(rows{n: 5})
			x.dispatch(s, Fence{})
		}
		w.pass(w.now() + 1)
		f.take(0, 1, long, "0-0")
		served := w.members(w.shard.Route(f.routes[0]))[1]
		if served.Member != f.id {
			t.Fatalf("the run that was served is first")
		}
		w.pass(w.now() + 1)
		s := f.staging()
		s.stage(rows{n: 1})
		f.dispatch(s, Fence{})
		if z := w.members(w.shard.Route(f.routes[0])); z[1] != served {
			t.Errorf("the route is %v, the run was served at %v", z, served)
		}
	})
}

// A run that grows piece by piece has no more bytes than one that is staged at once.
func TestDispatchBoundsTheBytesOfARun(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fan(4, "a")
		f.most = 30 // ten rows of three bytes, until there is a second digit
		s := f.staging()
		s.stage(rows{n: 9})
		f.dispatch(s, Fence{})
		s = f.staging()
		s.stage(rows{n: 1})
		before := f.dumpAll()
		f.most = 29
		if r := f.dispatch(s, Fence{}); r.Outcome != "limit" || r.Number != 30 {
			t.Errorf("one byte too many: %+v", r)
		}
		wantEqual(t, "state", f.dumpAll(), before)
		f.most = 30
		if r := f.dispatch(s, Fence{}); r.Outcome != "ok" {
			t.Errorf("just enough: %+v", r)
		}
	})
}

// A run's ID that another workflow has given: its rows would become that one's.
func TestDispatchToAnothersRun(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fan(4, "a")
		s := f.staging()
		s.stage(rows{n: 2})
		f.dispatch(s, Fence{})
		before := f.dumpAll()
		for _, change := range []func(*Dispatch){
			func(p *Dispatch) { p.Namespace = "other" },
			func(p *Dispatch) { p.WorkflowID = "other" },
		} {
			s := f.staging()
			s.stage(rows{n: 1})
			p := f.dispatchCall(s, Fence{})
			k := w.shard.Workflow("other", "other")
			p.Workflow, p.History, p.Runs = k.Record, k.History, w.shard.Runs("other")
			change(&p)
			if r := must(w.s.Dispatch(t.Context(), p))(t); r.Outcome != "taken" {
				t.Errorf("%+v", r)
			}
			wantEqual(t, "state", f.dumpAll(), before)
			wantEqual(t, "the other's", w.dump(k.Record, k.History, w.shard.Runs("other")), map[string]any{})
		}
	})
}
