package lua

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel/internal/keys"
	"github.com/umbelhq/umbel/internal/testredis"
)

// world is one shard of one installation, with the runs that a test puts there.
type world struct {
	t     *testing.T
	s     *Scripts
	rdb   redis.UniversalClient
	shard keys.Shard
	wake  Wake
	fans  []*fan
}

const (
	namespace = "ns"
	maxSeq    = int64(1)<<53 - 1
	long      = int64(60_000) // a lease that no test outlives, ms
)

func newWorld(t *testing.T, r *testredis.Redis) *world {
	t.Helper()
	return newWorldOn(t, r, New(r.Client))
}

func newWorldOn(t *testing.T, r *testredis.Redis, s *Scripts) *world {
	t.Helper()
	// On a machine that is busy enough a reply takes seconds. A client that asks again meanwhile gets another answer.
	switch c := r.Client.(type) {
	case *redis.Client:
		c.Options().ReadTimeout = time.Minute
	case *redis.ClusterClient:
		c.Options().ReadTimeout = time.Minute
	}
	space := keys.New(r.Prefix, 4)
	return &world{
		t: t, s: s, rdb: s.rdb, shard: space.Shard(1), wake: Wake{Channel: space.Channel(), Shard: 1},
	}
}

// each runs f on every kind of Redis, each time in a world of its own, and checks the invariants at the end.
func each(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	testredis.Each(t, func(t *testing.T, r *testredis.Redis) {
		t.Parallel()
		w := newWorld(t, r)
		f(t, w)
		w.check()
	})
}

func (w *world) ctx() context.Context { return w.t.Context() }

// must fails the test on an error.
func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// now is Redis's clock, ms.
func (w *world) now() int64 {
	w.t.Helper()
	// Time has no key: in a cluster, ask the node that the shard is on.
	v, err := w.rdb.Eval(w.ctx(), "return redis.call('TIME')", []string{w.shard.Ready()}).Slice()
	if err != nil {
		w.t.Fatal(err)
	}
	sec, _ := strconv.ParseInt(v[0].(string), 10, 64)
	usec, _ := strconv.ParseInt(v[1].(string), 10, 64)
	return sec*1000 + usec/1000
}

// pass waits until Redis's clock has passed an instant.
func (w *world) pass(ms int64) {
	w.t.Helper()
	for w.now() <= ms {
		if w.ctx().Err() != nil {
			w.t.Fatal("the test is over before the instant")
		}
	}
}

// fan is a run, or one that is being staged.
type fan struct {
	*world

	id     string
	wf     string
	keys   keys.Run
	wfKeys keys.Workflow
	routes []string
	view   View
	next   int64 // where the staging goes on
	base   int64
	k      int
	input  func(o int64) string
	large  map[int64]bool
	ttl    int64
	most   int64 // bytes
}

// fan names a run of k rows a chunk that waits on these task queues.
func (w *world) fan(k int, queues ...string) *fan {
	id := strings.ToLower(rand.Text())
	f := &fan{
		world: w, id: id, wf: "wf-" + id[:8], keys: w.shard.Run(id), k: k, large: map[int64]bool{},
		ttl: 600_000, most: 1 << 32,
	}
	f.wfKeys = w.shard.Workflow(namespace, f.wf)
	f.input = func(o int64) string { return fmt.Sprintf("<%d>", o) }
	for _, q := range queues {
		f.routes = append(f.routes, keys.Route{Namespace: namespace, TaskQueue: q, Type: "act", Priority: 3}.String())
	}
	w.fans = append(w.fans, f)
	return f
}

func (f *fan) runKeys() RunKeys {
	k := f.keys
	return RunKeys{
		Run: k.Record(), Workflow: f.wfKeys.Record, History: f.wfKeys.History, Rows: k.Rows(), Resolved: k.Resolved(),
		Failed: k.Failed(), Cancelled: k.Cancelled(), Rest: k.Rest(), Muted: k.Muted(), Attempts: k.Attempts(),
	}
}

func (f *fan) routeKeys() []RouteKeys {
	out := make([]RouteKeys, len(f.routes))
	for i, r := range f.routes {
		out[i] = RouteKeys{Due: f.keys.Due(i), Set: f.shard.Route(r), Route: r}
	}
	return out
}

// rows are consecutive rows of a staging call.
type rows struct {
	n         int
	route     int
	delay     int64
	notBefore int64
}

// stageCall packs rows from an offset on as the outbox does.
func (f *fan) stageCall(offset int64, rs ...rows) Stage {
	p := Stage{
		Run: f.keys.Record(), Inputs: f.keys.Inputs(), Base: f.base, Offset: offset, TTL: f.ttl, MaxBytes: f.most,
		Before: f.view,
		After:  View{ChunkRows: f.k, ContentType: "text/plain", Routes: strings.Join(f.routes, "\n"), RouteCount: len(f.routes)},
	}
	for i := range f.routes {
		p.Due = append(p.Due, f.keys.Due(i))
	}
	var large []Field
	o, k := offset, int64(f.k)
	for _, r := range rs {
		p.Spans = append(p.Spans, Span{Route: r.route, Delay: r.delay, NotBefore: r.notBefore, First: o, Last: o + int64(r.n) - 1})
		for range r.n {
			name, in := strconv.FormatInt(o/k, 10), f.input(o)
			p.Bytes += int64(len(in))
			if f.large[o] {
				large = append(large, Field{Name: "b" + strconv.FormatInt(o, 10), Bytes: []byte(in)})
				in, p.Large = "L", true
			}
			if n := len(p.Fields); n == 0 || p.Fields[n-1].Name != name {
				p.Fields = append(p.Fields, Field{Name: name})
			}
			last := &p.Fields[len(p.Fields)-1]
			last.Bytes = append(last.Bytes, in...)
			o++
		}
	}
	p.Count = int(o - offset)
	p.Fields = append(p.Fields, large...)
	return p
}

// stage adds rows at the end of the staging and wants them accepted.
func (f *fan) stage(rs ...rows) {
	f.t.Helper()
	p := f.stageCall(f.next, rs...)
	got := must(f.s.Stage(f.ctx(), p))(f.t)
	if want := f.next + int64(p.Count); got.Outcome != "ok" || got.Next != want {
		f.t.Fatalf("stage %d rows at %d: %+v", p.Count, f.next, got)
	}
	f.next, f.view = got.Next, p.After
}

func (f *fan) commitCall() Commit {
	k := f.runKeys()
	return Commit{
		Run: k.Run, Inputs: f.keys.Inputs(), Workflow: k.Workflow, History: k.History, Ready: f.shard.Ready(),
		Backlog: f.shard.Backlog(), Runs: f.shard.Runs(namespace), Routes: f.routeKeys(), ID: f.id, Namespace: namespace, WorkflowID: f.wf, Rows: f.next,
		Digest: []byte("digest\x00"), Types: []byte("[]"), Started: []byte("started;"), ClosedEmpty: []byte("decided;closed;"),
		Wake: f.wake, MaxSeq: maxSeq,
	}
}

func (f *fan) runCommit(p Commit) CommitReply {
	f.t.Helper()
	return must(ParseCommit(must(f.s.Run(f.ctx(), p.Call()))(f.t)))(f.t)
}

func (f *fan) commit() {
	f.t.Helper()
	if got := f.runCommit(f.commitCall()); got.Outcome != "ok" || got.Rows != f.next {
		f.t.Fatalf("commit: %+v", got)
	}
}

// started is a committed run of n rows on each of the queues in turn.
func (w *world) started(k, n int, queues ...string) *fan {
	w.t.Helper()
	f := w.fan(k, queues...)
	for r := range queues {
		f.stage(rows{n: n, route: r})
	}
	f.commit()
	return f
}

func (f *fan) pair(route int) Pair {
	k := f.keys
	return Pair{
		Run: k.Record(), Rows: k.Rows(), Inputs: k.Inputs(), Resolved: k.Resolved(), RouteKeys: f.routeKeys()[route],
		ID: f.id, Index: route, Most: math.MaxInt32,
	}
}

func nonce() string { return strings.ToLower(rand.Text())[:NonceRandom] }

func (w *world) claimCall(lease int64, takers []Taker, pairs ...Pair) Claim {
	return Claim{
		Ready: w.shard.Ready(), Backlog: w.shard.Backlog(), Claims: w.shard.Claims(), Leases: w.shard.Leases(),
		Lease: lease, MaxChunks: 1000, MaxLarge: 1 << 20, Takers: takers, Pairs: pairs,
	}
}

// claim takes up to want rows of a route for one poll. It returns the nonce of the claim and what came.
func (f *fan) claim(route, want int, lease int64) (string, Claimed) {
	f.t.Helper()
	n := nonce()
	r := must(f.s.Claim(f.ctx(), f.claimCall(lease, []Taker{{Nonce: n, Want: want, Worker: "worker"}}, f.pair(route))))(f.t)
	if r.Outcome != "ok" || len(r.Pairs) != 1 {
		f.t.Fatalf("claim: %+v", r)
	}
	return Nonce(n, 0), r.Pairs[0]
}

// take is a claim that must get exactly these ordinals.
func (f *fan) take(route, want int, lease int64, spans string) string {
	f.t.Helper()
	n, c := f.claim(route, want, lease)
	got := ""
	for _, g := range c.Grants {
		got += g.Spans
	}
	if got != spans {
		f.t.Fatalf("claim of %d rows took %q, want %q", want, got, spans)
	}
	return n
}

func (f *fan) settleCall(groups ...Group) Settle {
	return Settle{
		RunKeys: f.runKeys(), Claims: f.shard.Claims(), Leases: f.shard.Leases(), Ready: f.shard.Ready(),
		Backlog: f.shard.Backlog(), Runs: f.shard.Runs(namespace), Routes: f.routeKeys(), ID: f.id,
		Closings: Closings{Completed: []byte("completed;"), Failed: []byte("failed;"), Cancelled: []byte("cancelled;")},
		Wake:     f.wake, MaxSeq: maxSeq, Groups: groups,
	}
}

func (f *fan) runSettle(p Settle) SettleReply {
	f.t.Helper()
	return must(ParseSettle(must(f.s.Run(f.ctx(), p.Call()))(f.t)))(f.t)
}

// settle wants every item accepted, and returns the run's status.
func (f *fan) settle(groups ...Group) string {
	f.t.Helper()
	r := f.runSettle(f.settleCall(groups...))
	if r.Outcome != "ok" || len(r.Exceptions) > 0 {
		f.t.Fatalf("settle: %+v", r)
	}
	return r.Status
}

// group ends ordinals in one way; attempt 1, route 0.
func group(verb Verb, nonce string, ordinals ...int64) Group {
	g := Group{Verb: verb, Nonce: nonce, Attempt: 1, Preamble: []byte("by;")}
	for _, o := range ordinals {
		g.Items = append(g.Items, Item{Ordinal: o, Event: fmt.Appendf(nil, "%s%d;", verb, o)})
	}
	return g
}

func seq(first, last int64) []int64 {
	var out []int64
	for o := first; o <= last; o++ {
		out = append(out, o)
	}
	return out
}

func (f *fan) cancelCall() Cancel {
	return Cancel{
		RunKeys: f.runKeys(), Ready: f.shard.Ready(), Backlog: f.shard.Backlog(), Runs: f.shard.Runs(namespace),
		Routes: f.routeKeys(), ID: f.id,
		Requested: []byte("requested;"), Closing: []byte("decided;closed;"), Wake: f.wake, MaxSeq: maxSeq,
	}
}

func (w *world) sweepCall(gap int64) Sweep {
	return Sweep{Sweep: w.shard.Sweep(), Claims: w.shard.Claims(), Leases: w.shard.Leases(), Gap: gap, Most: 100}
}

// field reads a field of a hash, "" if there is none.
func (w *world) field(key, field string) string {
	w.t.Helper()
	v, err := w.rdb.HGet(w.ctx(), key, field).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		w.t.Fatal(err)
	}
	return v
}

func (f *fan) status() string { f.t.Helper(); return f.field(f.keys.Record(), "status") }

// members reads a sorted set as 'member@score'.
func (w *world) members(key string) []redis.Z {
	w.t.Helper()
	return must(w.rdb.ZRangeWithScores(w.ctx(), key, 0, -1).Result())(w.t)
}

// dispatchCall adds what from has staged to f, which is written from outside.
func (f *fan) dispatchCall(from *fan, fence Fence) Dispatch {
	k := f.runKeys()
	p := Dispatch{
		Staged: from.keys.Record(), StagedInputs: from.keys.Inputs(), Run: k.Run, Inputs: f.keys.Inputs(),
		Workflow: k.Workflow, History: k.History, Ready: f.shard.Ready(), Backlog: f.shard.Backlog(), Runs: f.shard.Runs(namespace),
		ID: f.id, Namespace: namespace, WorkflowID: f.wf, Base: from.base, Count: int(from.next - from.base),
		Fence: fence, Events: true, Wake: f.wake, MaxSeq: maxSeq, MaxBytes: f.most,
	}
	for r, rk := range f.routeKeys() {
		p.Routes = append(p.Routes, DispatchRoute{Staged: from.keys.Due(r), RouteKeys: rk})
	}
	return p
}

// staging is rows that are to be added to f.
func (f *fan) staging() *fan {
	s := f.world.fan(f.k)
	s.routes, s.base, s.next, s.input = f.routes, f.next, f.next, f.input
	return s
}

// token puts a write token in force.
func (f *fan) token(token string) {
	f.t.Helper()
	must(f.rdb.HSet(f.ctx(), f.wfKeys.Record, "token", token).Result())(f.t)
}

func (f *fan) appendCall(fence Fence, events ...string) Append {
	return Append{
		Workflow: f.wfKeys.Record, History: f.wfKeys.History, Fence: fence, Count: len(events),
		Events: []byte(strings.Join(events, "")), MaxSeq: maxSeq,
	}
}
