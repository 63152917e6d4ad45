package lua

import (
	"testing"
)

// Promise 8.
func TestAppend(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fan(4, "a")
		app := func(fence Fence, events ...string) AppendReply {
			t.Helper()
			return must(w.s.Append(t.Context(), f.appendCall(fence, events...)))(t)
		}
		for _, token := range []string{"me", ""} {
			if r := app(Fence{Token: token}, "a;"); r.Outcome != "fenced" {
				t.Errorf("no token is in force: %+v", r)
			}
		}
		f.token("me")
		if r := app(Fence{Token: "me"}, "a;", "b;"); r.Outcome != "ok" || r.Head != 2 {
			t.Errorf("first: %+v", r)
		}
		if r := app(Fence{Token: "me", Head: 2}, "c\x00\xff;"); r.Outcome != "ok" || r.Head != 3 {
			t.Errorf("second: %+v", r)
		}
		want := []string{"1-2 e a;b;", "3-1 e c\x00\xff;"}
		wantEqual(t, "history", f.history(), want)

		if r := app(Fence{Token: "you", Head: 3}, "d;"); r.Outcome != "fenced" {
			t.Errorf("another token: %+v", r)
		}
		for head, events := range map[int64][]string{
			0: {"a;", "x;"}, // other events at a head that is past
			1: {"b;"},       // in the middle of an entry
			2: {"c\x00\xff;", "d;"},
			4: {"d;"}, // a head that is not yet
		} {
			if r := app(Fence{Token: "me", Head: head}, events...); r.Outcome != "conflict" || r.Head != 3 {
				t.Errorf("at head %d: %+v", head, r)
			}
		}
		p := f.appendCall(Fence{Token: "me", Head: 3}, "d;")
		p.MaxSeq = 3
		if r := must(w.s.Append(t.Context(), p))(t); r.Outcome != "full" || r.Head != 3 {
			t.Errorf("full: %+v", r)
		}
		wantEqual(t, "history", f.history(), want)
	})
}

// The reply was lost on the way and the call is repeated.
func TestAppendAgain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fan(4, "a")
		f.token("me")
		p := f.appendCall(Fence{Token: "me"}, "a;", "b;")
		for range 2 {
			if r := must(w.s.Append(t.Context(), p))(t); r.Outcome != "ok" || r.Head != 2 {
				t.Errorf("%+v", r)
			}
		}
		must(w.s.Append(t.Context(), f.appendCall(Fence{Token: "me", Head: 2}, "c;")))(t)
		if r := must(w.s.Append(t.Context(), p))(t); r.Outcome != "ok" || r.Head != 2 {
			t.Errorf("late: %+v", r)
		}
		wantEqual(t, "history", f.history(), []string{"1-2 e a;b;", "3-1 e c;"})
	})
}

// Sequence numbers up to the last that Redis and Lua count exactly.
func TestAppendLargeNumbers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fan(4, "a")
		f.token("me")
		must(w.rdb.HSet(t.Context(), f.wfKeys.Record, "head", "9007199254740980").Result())(t)
		r := must(w.s.Append(t.Context(), f.appendCall(Fence{Token: "me", Head: maxSeq - 11}, "a;", "b;")))(t)
		if r.Outcome != "ok" || r.Head != maxSeq-9 {
			t.Errorf("%+v", r)
		}
		wantEqual(t, "history", f.history(), []string{"9007199254740981-2 e a;b;"})
		wantEqual(t, "head", f.field(f.wfKeys.Record, "head"), "9007199254740982")
		s := f.staging()
		s.stage(rows{n: 4})
		d := must(w.s.Dispatch(t.Context(), f.dispatchCall(s, Fence{Token: "me", Head: maxSeq - 9})))(t)
		if d.Outcome != "ok" || d.Number != maxSeq-1 {
			t.Errorf("%+v", d)
		}
		n := f.take(0, 4, long, "0-3")
		if r := f.runSettle(f.settleCall(group(Complete, n, 0))); r.Outcome != "full" || r.Number != maxSeq-1 {
			t.Errorf("settle: %+v", r)
		}
		if r := must(w.s.Cancel(t.Context(), f.cancelCall()))(t); r.Outcome != "full" || r.Head != maxSeq-1 {
			t.Errorf("cancel: %+v", r)
		}
	})
}
