package lua

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
)

// spans reads a due set as 'member@delay', the delay counted from the staging's instant.
func (f *fan) spans(route int) []string {
	f.t.Helper()
	t0, _ := strconv.ParseInt(f.field(f.keys.Record(), "t0"), 10, 64)
	var out []string
	for _, z := range f.members(f.keys.Due(route)) {
		out = append(out, fmt.Sprintf("%s@%d", z.Member, int64(z.Score)-t0))
	}
	return out
}

func wantEqual(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestStageMergesEqualSpans(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fan(7, "a", "b")
		for range 30 { // 30 calls of 10 rows, chunks of 7: most calls go on with a chunk
			f.stage(rows{n: 10})
		}
		wantEqual(t, "uniform rows", f.spans(0), []string{"00000000f00000299@0"})
		f.stage(rows{n: 5, delay: 1000}, rows{n: 1, route: 1})
		f.stage(rows{n: 4, route: 1}, rows{n: 2})
		f.stage(rows{n: 1})
		f.stage(rows{n: 2, delay: 2000})
		f.stage(rows{n: 3, delay: 2000})
		wantEqual(t, "route 0", f.spans(0), []string{
			"00000000f00000299@0", "00000310f00000312@0", "00000300f00000304@1000", "00000313f00000317@2000",
		})
		wantEqual(t, "route 1", f.spans(1), []string{"00000305f00000309@0"})
		wantEqual(t, "pending of route 0", f.field(f.keys.Record(), "p0"), "313")
		wantEqual(t, "pending of route 1", f.field(f.keys.Record(), "p1"), "5")

		var all strings.Builder
		chunks := must(w.rdb.HGetAll(t.Context(), f.keys.Inputs()).Result())(t)
		for c := range len(chunks) {
			all.WriteString(chunks[strconv.Itoa(c)])
		}
		want := ""
		for o := range f.next {
			want += f.input(o)
		}
		if all.String() != want || len(chunks) != 46 { // ⌈318/7⌉
			t.Errorf("%d chunks hold %d bytes, want 46 and %d", len(chunks), all.Len(), len(want))
		}
		f.commit()
	})
}

func TestStageNotBefore(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fan(10, "a")
		at := w.now() + 3_600_000
		f.stage(rows{n: 2, notBefore: at}, rows{n: 1, notBefore: 5, delay: 100}, rows{n: 1})
		z := f.members(f.keys.Due(0))
		wantEqual(t, "not before", z[2].Score, float64(at))
		wantEqual(t, "long past", f.spans(0)[:2], []string{"00000003f00000003@0", "00000002f00000002@100"})
		f.commit()
	})
}

// Instants from the year 1970 to 9999 have one to fifteen digits. None is taken for the beginning of another.
func TestStageInstantsOfAnyLength(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fan(10, "a")
		const last, shorter = 253_402_300_799_000, 2_534_023_007_990
		f.stage(rows{n: 1, notBefore: last})
		f.stage(rows{n: 1, notBefore: shorter})
		f.stage(rows{n: 1, notBefore: last})
		f.stage(rows{n: 1, notBefore: last})
		wantEqual(t, "due set", f.members(f.keys.Due(0)), []redis.Z{
			{Member: "00000001f00000001", Score: shorter}, {Member: "00000000f00000000", Score: last},
			{Member: "00000002f00000003", Score: last},
		})
		f.commit()
	})
}

func TestStageAgainAndLost(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fan(4, "a")
		first := f.stageCall(0, rows{n: 3})
		f.stage(rows{n: 3})
		before := w.dump(f.keys.Record(), f.keys.Inputs(), f.keys.Due(0))
		for name, c := range map[string]struct {
			p       Stage
			outcome string
		}{
			"the same":           {first, "again"},
			"a part of it":       {f.stageCall(1, rows{n: 2}), "again"},
			"a gap":              {f.stageCall(4, rows{n: 2}), "lost"},
			"half of it":         {f.stageCall(2, rows{n: 2}), "lost"},
			"gone from the base": {f.stageCall(0, rows{n: 5}), "lost"},
		} {
			r := must(w.s.Stage(t.Context(), c.p))(t)
			if r.Outcome != c.outcome || r.Next != 3 {
				t.Errorf("%s: %+v, want %s and next 3", name, r, c.outcome)
			}
		}
		wantEqual(t, "what is staged", w.dump(f.keys.Record(), f.keys.Inputs(), f.keys.Due(0)), before)
		if r := must(w.s.Stage(t.Context(), w.fan(4, "a").stageCall(8, rows{n: 1})))(t); r.Outcome != "lost" || r.Next != 0 {
			t.Errorf("nothing is staged: %+v", r)
		}
		f.commit()
		if r := must(w.s.Stage(t.Context(), f.stageCall(3, rows{n: 1})))(t); r.Outcome != "committed" {
			t.Errorf("after the commit: %+v", r)
		}
	})
}

func TestStageLimit(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fan(4, "a")
		f.most = 10 // "<0>" and so on: three bytes each
		f.stage(rows{n: 3})
		if r := must(w.s.Stage(t.Context(), f.stageCall(3, rows{n: 1})))(t); r.Outcome != "limit" || r.Bytes != 12 {
			t.Errorf("%+v", r)
		}
		wantEqual(t, "bytes", f.field(f.keys.Record(), "bytes"), "9")
	})
}

func TestStageView(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fan(4, "a")
		f.stage(rows{n: 2})
		view := f.view
		for name, change := range map[string]func(p *Stage){
			"rows of a chunk": func(p *Stage) { p.After.ChunkRows = 5 },
			"content type":    func(p *Stage) { p.After.ContentType = "x" },
			"routes":          func(p *Stage) { p.Before.RouteCount = 0 },
		} {
			p := f.stageCall(2, rows{n: 1})
			change(&p)
			r := must(w.s.Stage(t.Context(), p))(t)
			if r.Outcome != "view" || r.View != view {
				t.Errorf("%s: %+v, want the view %+v", name, r, view)
			}
		}
		// A route that a later call adds is in the view from then on.
		f.routes = append(f.routes, strings.Replace(f.routes[0], ":a:", ":b:", 1))
		f.stage(rows{n: 1, route: 1})
		wantEqual(t, "routes", f.field(f.keys.Record(), "nroutes"), "2")
		f.commit()
	})
}

func TestStagedKeysExpire(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fan(4, "a", "b", "c")
		f.stage(rows{n: 2}, rows{n: 2, route: 2})
		f.ttl = 50_000
		f.stage(rows{n: 1, route: 1})
		staged := []string{f.keys.Record(), f.keys.Inputs(), f.keys.Due(0), f.keys.Due(1), f.keys.Due(2)}
		for _, key := range staged {
			if ttl := must(w.rdb.PTTL(t.Context(), key).Result())(t).Milliseconds(); ttl <= 0 || ttl > 50_000 {
				t.Errorf("%s lives %d ms more", key, ttl)
			}
		}
		f.commit()
		for _, key := range append(staged, f.wfKeys.Record, f.wfKeys.History, w.shard.Ready(), w.shard.Backlog(), w.shard.Route(f.routes[1])) {
			if ttl := must(w.rdb.PTTL(t.Context(), key).Result())(t); ttl != -1 {
				t.Errorf("%s of an open run expires: %v", key, ttl)
			}
		}
	})
}

// A staging that expired is gone as a whole: its rows must be staged again from the base.
func TestStagingExpires(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fan(4, "a")
		f.ttl = 1
		f.stage(rows{n: 2})
		w.pass(w.now() + 2)
		if r := must(w.s.Stage(t.Context(), f.stageCall(2, rows{n: 1})))(t); r.Outcome != "lost" || r.Next != 0 {
			t.Errorf("go on: %+v", r)
		}
		if r := f.runCommit(f.commitCall()); r.Outcome != "lost" || r.Number != 0 {
			t.Errorf("commit: %+v", r)
		}
	})
}
