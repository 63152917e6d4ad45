package lua

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// CASE 20, a script at a time: more rows than Lua unpacks, in every script, on every Redis.
func TestLarge(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		const n = 20_000
		f := w.fan(100, "a")
		f.stage(rows{n: n}) // in one call
		f.commit()
		wantEqual(t, "spans", f.spans(0), []string{"00000000f00019999@0"})
		claims := map[string][]int64{}
		for first := int64(0); first < n; first += 1000 {
			claims[f.take(0, 2000, 1, fmt.Sprintf("%d-%d", first, first+999))] = seq(first, first+999)
		}
		w.check()
		for nonce, ordinals := range claims {
			wantEqual(t, "renew", w.renew(f.hold(nonce, ordinals...)), []string{strings.Repeat("h", 1000)})
			f.settle(group(Complete, nonce, ordinals[:250]...))
			f.settle(group(Requeue, nonce, ordinals[250:500]...))
			w.pass(w.deadline(nonce))
			if r := f.runSettle(f.lapseCall(nonce, ordinals[500:]...)); r.Outcome != "ok" || len(r.Exceptions) > 0 {
				t.Fatalf("lapse: %+v", r)
			}
		}
		w.check()
		wantEqual(t, "pending", f.field(f.keys.Record(), "p0"), "15000")
		// a claim of singles only, 1,000 records
		_, c := f.claim(0, 1000, long)
		wantEqual(t, "retried", len(c.Retried), 1000)
		w.check()
		if r := must(w.s.Cancel(t.Context(), f.cancelCall()))(t); r.Outcome != "ok" || r.Cancelled != 15_000 {
			t.Errorf("cancel: %+v", r)
		}
		w.check()

		// and the most items of a call, resolved at once
		g := w.started(100, 1000, "a")
		wantEqual(t, "close", g.settle(group(Complete, "", seq(0, 999)...)), "completed")
	})
}

// Rows that alternate between two nodes make a span each.
func TestLargeWithoutSpans(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fan(100, "a", "b")
		f.stage(alternating(20_000)...)
		f.commit()
		w.check()
		for range 3 {
			_, c := f.claim(0, 1000, long)
			wantEqual(t, "rows", strings.Count(granted(c), "-"), 1000)
		}
		w.check()
		if r := must(w.s.Cancel(t.Context(), f.cancelCall()))(t); r.Outcome != "ok" || r.Cancelled != 20_000 {
			t.Errorf("cancel: %+v", r)
		}
	})
}

func alternating(n int) []rows {
	rs := make([]rows, n)
	for i := range rs {
		rs[i] = rows{n: 1, route: i % 2}
	}
	return rs
}

func TestLargeCancel(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fan(100, "a")
		for range 10 {
			f.stage(rows{n: 10_000})
		}
		f.commit()
		f.resolve(0, 5000, 99_999)
		if r := must(w.s.Cancel(t.Context(), f.cancelCall()))(t); r.Outcome != "ok" || r.Cancelled != 99_997 {
			t.Errorf("cancel: %+v", r)
		}
	})
}

// What is not bounded by its caller takes less than 10 ms of Redis, by its own measure. CASE 64 is the first.
func TestStepsAreShort(t *testing.T) {
	r := timed(t)
	w := newWorld(t, r)
	for range 3 { // a busy machine makes steps longer: one round of three is enough
		slow := w.slow(r, func(step func(f func())) {
			uniform, f := w.fan(100, "a"), w.fan(100, "a", "b")
			step(func() { uniform.stage(rows{n: 10_000}) })
			step(func() { f.stage(alternating(3000)...) })
			for range 97 {
				f.stage(alternating(1000)...)
			}
			step(f.commit)
			held := map[string][]int64{}
			for i := range 4 {
				n, c := "", Claimed{}
				step(func() { n, c = f.claim(i%2, 1000, long) })
				for s := range strings.SplitSeq(granted(c), ",") {
					a, _, _ := strings.Cut(s, "-")
					o, _ := strconv.ParseInt(a, 10, 64)
					held[n] = append(held[n], o)
				}
			}
			for n, ordinals := range held {
				step(func() { w.renew(f.hold(n, ordinals...)) })
				step(func() { f.settle(group(Complete, n, ordinals[:250]...)) })
				step(func() { f.settle(group(Requeue, n, ordinals[250:500]...)) })
			}
			step(func() { w.sweep(noGap) })
			step(func() { must(w.s.Cancel(t.Context(), f.cancelCall()))(t) })
		})
		w.check()
		if len(slow) == 0 {
			return
		}
		t.Logf("slow: %v", slow)
	}
	t.Error("steps took more than 10 ms of Redis in every round")
}
