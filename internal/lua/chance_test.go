package lua

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/umbelhq/umbel/internal/testredis"
)

// chance is a world in which anything happens in any order, and what must have come of it.
type chance struct {
	*world

	runs   []*fan
	ended  map[string]map[int64]string // of each run, an ordinal and how it ended: the verb and the attempt
	claims []claimed
}

type claimed struct {
	run      *fan
	nonce    string
	ordinals []int64
}

func (c *chance) start(t *rapid.T) {
	f := c.fan(rapid.IntRange(1, 5).Draw(t, "chunk"), "a", "b")
	for range rapid.IntRange(1, 4).Draw(t, "calls") {
		var rs []rows
		for range rapid.IntRange(1, 4).Draw(t, "spans") {
			rs = append(rs, rows{n: rapid.IntRange(1, 9).Draw(t, "rows"), route: rapid.IntRange(0, 1).Draw(t, "route")})
		}
		f.stage(rs...)
	}
	for r := range f.routes { // a route has rows, or it is not in the table
		f.stage(rows{n: 1, route: r})
	}
	f.commit()
	c.runs = append(c.runs, f)
	c.ended[f.id] = map[int64]string{}
}

func (c *chance) run(t *rapid.T) *fan {
	if len(c.runs) == 0 {
		c.start(t)
	}
	return rapid.SampledFrom(c.runs).Draw(t, "run")
}

func (c *chance) claimSome(t *rapid.T) {
	f, route := c.run(t), rapid.IntRange(0, 1).Draw(t, "route")
	lease := rapid.SampledFrom([]int64{1, long}).Draw(t, "lease")
	n, got := f.claim(route, rapid.IntRange(1, 12).Draw(t, "want"), lease)
	ordinals := []int64{}
	for _, g := range got.Grants {
		ordinals = f.rowsOf(Lapsed{Record: "\n\n" + g.Spans})
	}
	for _, o := range ordinals {
		if how := c.ended[f.id][o]; how != "" {
			t.Fatalf("row %d of %s was claimed after it had ended as %s", o, f.wf, how)
		}
		for _, other := range c.claims {
			if other.run == f && slices.Contains(other.ordinals, o) && f.field(f.keys.Rows(), strconv.FormatInt(o, 10))[5:31] != n {
				t.Fatalf("row %d is in two claims", o)
			}
		}
		in := got.Chunks[o/int64(f.k)]
		if !contains(in, f.input(o)) {
			t.Fatalf("chunk %q has no input of row %d", in, o)
		}
	}
	if len(ordinals) > 0 {
		c.claims = append(c.claims, claimed{f, n, ordinals})
	}
}

func contains(chunk, in string) bool {
	for i := range chunk {
		if len(chunk)-i >= len(in) && chunk[i:i+len(in)] == in {
			return true
		}
	}
	return false
}

// report settles some rows of a claim, or of none, in any way.
func (c *chance) report(t *rapid.T) {
	f := c.run(t)
	g := Group{
		Verb:    rapid.SampledFrom([]Verb{Complete, Complete, Fail, CancelIt, Requeue}).Draw(t, "verb"),
		Attempt: rapid.IntRange(1, 3).Draw(t, "attempt"), Preamble: []byte("by;"),
	}
	from := seq(0, f.next-1)
	if len(c.claims) > 0 && rapid.Bool().Draw(t, "by a claim") {
		cl := rapid.SampledFrom(c.claims).Draw(t, "claim")
		f, g.Nonce, from = cl.run, cl.nonce, cl.ordinals
	}
	for _, o := range rapid.SliceOfNDistinct(rapid.SampledFrom(from), 1, min(5, len(from)), rapid.ID[int64]).Draw(t, "ordinals") {
		it := Item{Ordinal: o}
		if rapid.IntRange(0, 4).Draw(t, "mute") > 0 {
			it.Event = fmt.Appendf(nil, "%s%d;", g.Verb, o)
		}
		g.Items = append(g.Items, it)
	}
	if g.Nonce == "" && g.Verb == Requeue { // a fresh row is out of reach without its span
		g.Verb = Complete
	}
	if g.Nonce == "" {
		g.Route = c.routeOf(f, g.Items)
		if g.Route < 0 {
			return
		}
	}
	before := f.status()
	r := f.runSettle(f.settleCall(g))
	if before != "running" {
		if r.Outcome != "closed" || r.Status != before {
			t.Fatalf("a %s run answers %+v", before, r)
		}
		return
	}
	if r.Outcome != "ok" {
		t.Fatalf("%+v", r)
	}
	for i, it := range g.Items {
		c.judge(t, f, g, it, slices.IndexFunc(r.Exceptions, func(e Exception) bool { return e.Item == i }), r)
	}
}

// judge compares what became of an item with what has been so far: the first terminal wins.
func (c *chance) judge(t *rapid.T, f *fan, g Group, it Item, exception int, r SettleReply) {
	ended := c.ended[f.id]
	how, was := ended[it.Ordinal]
	if exception >= 0 {
		e := r.Exceptions[exception]
		want := how
		if e.Code == 'd' && !was || e.Code == 'd' && want != strconv.Itoa(e.Attempt) || e.Code == 's' && was {
			t.Fatalf("row %d, which ended as %q: %+v", it.Ordinal, how, e)
		}
		return
	}
	if g.Verb == Requeue {
		if was {
			t.Fatalf("row %d was put back after it had ended", it.Ordinal)
		}
		return
	}
	if was { // its event was still missing
		if how != "0" {
			ended[it.Ordinal] = c.recorded(f, it.Ordinal)
		}
		return
	}
	ended[it.Ordinal] = strconv.Itoa(g.Attempt)
	if g.Verb == CancelIt {
		ended[it.Ordinal] = "0"
	}
}

// recorded is the attempt that a run says it has recorded.
func (c *chance) recorded(f *fan, o int64) string {
	if a := f.field(f.keys.Attempts(), strconv.FormatInt(o, 10)); a != "" {
		return a
	}
	return "1"
}

// routeOf is the route that all these rows are on, or -1 if they differ: a group has one.
func (c *chance) routeOf(f *fan, items []Item) int {
	route := -1
	for _, it := range items {
		for r := range f.routes {
			for _, z := range f.members(f.keys.Due(r)) {
				m := z.Member.(string)
				a, _ := strconv.ParseInt(m[:8], 10, 64)
				b := a
				if m[8] == 'f' {
					b, _ = strconv.ParseInt(m[9:], 10, 64)
				}
				if a <= it.Ordinal && it.Ordinal <= b {
					if route >= 0 && route != r {
						return -1
					}
					route = r
				}
			}
		}
	}
	return max(route, 0)
}

// lapse puts back what a claim still holds, if its lease has ended.
func (c *chance) lapse(t *rapid.T) {
	if len(c.claims) == 0 {
		return
	}
	cl := rapid.SampledFrom(c.claims).Draw(t, "claim")
	p := cl.run.lapseCall(cl.nonce, cl.ordinals...)
	deadline, status, before := c.deadline(cl.nonce), cl.run.status(), c.now()
	r := cl.run.runSettle(p)
	switch {
	case r.Outcome == "live" && (deadline == 0 || deadline > before):
	case r.Outcome == "closed" && status != "running":
	case r.Outcome == "ok" && status == "running" && deadline <= c.now():
	default:
		t.Fatalf("lapse of a claim until %d of a %s run: %+v", deadline, status, r)
	}
}

func (c *chance) cancelOne(t *rapid.T) {
	f := c.run(t)
	open := f.next - int64(len(c.ended[f.id]))
	r := must(c.s.Cancel(c.ctx(), f.cancelCall()))(c.t)
	if r.Outcome == "ok" && r.Cancelled != open {
		t.Fatalf("%d rows were open, %+v", open, r)
	}
}

func (c *chance) renewSome(t *rapid.T) {
	if len(c.claims) == 0 {
		return
	}
	cl := rapid.SampledFrom(c.claims).Draw(t, "claim")
	states := c.renew(cl.run.hold(cl.nonce, cl.ordinals...))[0]
	for i, s := range states {
		if how := c.ended[cl.run.id][cl.ordinals[i]]; s == 'h' && how != "" {
			t.Fatalf("row %d is held and has ended as %s", cl.ordinals[i], how)
		}
	}
}

// Anything may happen in any order: after every step the books balance, no row is in two hands, and the first terminal
// stands. Promises 3, 6, 11 and 12.
func TestAnything(t *testing.T) {
	t.Parallel()
	// A check is thirty steps with all books read after each. Ask for more with -rapid.checks.
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		must(struct{}{}, f.Value.Set("25"))(t)
	}
	for name, open := range map[string]func(testing.TB) *testredis.Redis{"mini": testredis.Mini, "real": testredis.Shared} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := New(open(t).Client)
			rapid.Check(t, func(rt *rapid.T) {
				r := &testredis.Redis{Client: s.Redis(), Prefix: "t" + nonce()}
				c := &chance{world: newWorldOn(t, r, s), ended: map[string]map[int64]string{}}
				step := func(f func(*rapid.T)) func(*rapid.T) {
					return func(rt *rapid.T) {
						f(rt)
						c.check()
						if t.Failed() {
							rt.FailNow()
						}
					}
				}
				rt.Repeat(map[string]func(*rapid.T){
					"start": step(c.start), "claim": step(c.claimSome), "claim more": step(c.claimSome), "report": step(c.report),
					"report more": step(c.report), "lapse": step(c.lapse), "renew": step(c.renewSome),
					"cancel": step(func(rt *rapid.T) {
						if rapid.IntRange(0, 5).Draw(rt, "rarely") == 0 {
							c.cancelOne(rt)
						}
					}),
					"sweep": step(func(*rapid.T) { c.sweep(noGap) }),
				})
			})
		})
	}
}
