package lua

import (
	"slices"
	"strconv"
	"testing"
)

// resolve completes fresh rows from outside: they leave holes in their span.
func (f *fan) resolve(ordinals ...int64) {
	f.t.Helper()
	for page := range slices.Chunk(ordinals, 250) {
		f.settle(group(Complete, "", page...))
	}
}

func TestClaimSkipsHoles(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		for name, c := range map[string]struct {
			n        int
			resolved []int64
			want     string
		}{
			"the first":            {10, seq(0, 0), "1-9"},
			"the last":             {10, seq(9, 9), "0-8"},
			"one in a byte":        {24, seq(11, 11), "0-10,12-23"},
			"up to a byte's edge":  {24, seq(4, 7), "0-3,8-23"},
			"from a byte's edge":   {24, seq(8, 11), "0-7,12-23"},
			"a byte":               {24, seq(8, 15), "0-7,16-23"},
			"over two edges":       {24, seq(7, 16), "0-6,17-23"},
			"all but the ends":     {24, seq(1, 22), "0-0,23-23"},
			"every other":          {12, []int64{0, 2, 4, 6, 8, 10}, "1-1,3-3,5-5,7-7,9-9,11-11"},
			"to the bitmap's end":  {33, seq(8, 31), "0-7,32-32"},
			"to the end of a byte": {17, seq(3, 15), "0-2,16-16"},
		} {
			f := w.fan(4, "a")
			f.stage(rows{n: c.n})
			f.commit()
			f.resolve(c.resolved...)
			w.check()
			wantEqual(t, name, func() string { _, c := f.claim(0, 100, long); return granted(c) }(), c.want)
			w.check()
			wantEqual(t, name+": holes", f.field(f.keys.Record(), "holes"), "0")
			if t.Failed() {
				t.Fatal(name)
			}
		}
	})
}

// A span that has only resolved rows goes, however it is taken.
func TestClaimOfResolvedSpans(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fan(4, "a")
		f.stage(rows{n: 20}, rows{n: 10, delay: 0, notBefore: 0}, rows{n: 10, delay: 1}, rows{n: 10, delay: 2})
		f.commit()
		f.resolve(append(seq(0, 29), seq(40, 49)...)...)
		w.pass(w.now() + 3)
		f.take(0, 3, long, "30-32")
		w.check()
		f.take(0, 100, long, "33-39")
		wantEqual(t, "holes", f.field(f.keys.Record(), "holes"), "0")
		wantEqual(t, "members", len(f.members(f.keys.Due(0))), 0)
	})
}

// Holes are skipped in bounded steps: where they alternate, a claim may take less than there is, and a call that
// took nothing says that there is more.
func TestClaimOfManyHoles(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fan(100, "a")
		f.stage(rows{n: 6000})
		f.commit()
		// Every other row, set beforehand: as if 3,000 reports had come.
		pattern := make([]byte, 6000/8)
		for i := range pattern {
			pattern[i] = 0b10101010
		}
		must(w.rdb.Set(t.Context(), f.keys.Resolved(), pattern, 0).Result())(t)
		must(w.rdb.HSet(t.Context(), f.keys.Record(), "holes", 3000, "completed", 3000, "p0", 3000).Result())(t)
		must(w.rdb.HSet(t.Context(), w.shard.Backlog(), f.routes[0], 3000).Result())(t)
		w.check()
		got := 0
		for calls := 1; got < 3000; calls++ {
			n, c := f.claim(0, 1000, long)
			left, _ := strconv.Atoi(f.field(w.shard.Leases(), n+":n"))
			got += left
			if left == 0 && c.Next == "" {
				t.Fatalf("after %d calls and %d rows nothing is left", calls, got)
			}
			if calls > 5 {
				t.Fatalf("%d calls took %d rows", calls, got)
			}
			w.check()
		}
		wantEqual(t, "holes", f.field(f.keys.Record(), "holes"), "0")
	})
}

// The budget of steps is the call's, not a span's: many short spans of resolved rows do not block Redis.
func TestClaimStepsAreTheCalls(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fan(100, "a")
		var rs []rows
		for range 300 {
			rs = append(rs, rows{n: 3}, rows{n: 3, delay: 1})
		}
		f.stage(rs...)
		f.commit()
		w.pass(w.now() + 2)
		f.resolve(seq(0, 1796)...)
		empty := 0
		for {
			_, c := f.claim(0, 1000, long)
			w.check()
			if granted(c) == "1797-1799" {
				break
			}
			if empty++; granted(c) != "" || c.Next == "" || empty > 3 {
				t.Fatalf("call %d: %+v", empty, c)
			}
		}
	})
}

// 100,000 resolved rows in a row cost one step, in Redis's own measure.
func TestClaimOfLongHolesIsFast(t *testing.T) {
	r := timed(t)
	w := newWorld(t, r)
	f := w.fan(100, "a")
	for range 11 {
		f.stage(rows{n: 10_000})
	}
	f.commit()
	bits := make([]byte, 100_000/8)
	for i := range bits {
		bits[i] = 0xff
	}
	must(w.rdb.Set(t.Context(), f.keys.Resolved(), bits, 0).Result())(t)
	must(w.rdb.HSet(t.Context(), f.keys.Record(), "holes", 100_000, "completed", 100_000, "p0", 10_000).Result())(t)
	must(w.rdb.HSet(t.Context(), w.shard.Backlog(), f.routes[0], 10_000).Result())(t)
	w.check()
	slow := w.slow(r, func(step func(func())) {
		step(func() { f.take(0, 100, long, "100000-100099") })
	})
	if len(slow) > 0 {
		t.Errorf("slow: %v", slow)
	}
	w.check()
}
