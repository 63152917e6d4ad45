package outboxtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/outbox"
)

// Property drives random operations on a store and on a [Model] side by side and compares what they return
// and, after each, every row. It opens a backend for each of rapid's checks; see the flags -rapid.checks and
// -rapid.steps.
func Property(t *testing.T, open func(t *testing.T) Backend) {
	t.Helper()
	PropertyIn(t, nil, open)
}

// PropertyIn is [Property] with each check, its backend included, inside in.
func PropertyIn(t *testing.T, in In, open func(t *testing.T) Backend) {
	t.Helper()
	rapid.Check(t, func(rt *rapid.T) {
		in.Check(t, rt, func(t *testing.T) {
			b := open(t)
			if b.Close != nil {
				defer b.Close()
			}
			rt.Repeat(newMachine(t, rt, b).actions())
		})
	})
}

// machine is a store and a model that should be alike.
type machine struct {
	t     *testing.T
	rt    *rapid.T
	b     Backend
	store outbox.Store
	model *Model
	flows []flow
	base  time.Time
}

func newMachine(t *testing.T, rt *rapid.T, b Backend) *machine {
	m := &machine{t: t, rt: rt, b: b, store: b.Store}
	m.base = m.now().Truncate(time.Millisecond)
	m.model = NewModel(m.now)
	// No two namespaces share a workflow ID: the order of claims has nothing to say about such rows.
	for i, id := range []umbel.WorkflowID{"w", "w:1", "00123", "v", "{x}"} {
		m.flows = append(m.flows, flow{[]string{"default", "n:1"}[i%2], id})
	}
	return m
}

func (m *machine) now() time.Time { return m.b.Now(m.t) }

func (m *machine) ctx() context.Context { return m.t.Context() }

func (m *machine) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"":           m.compare,
		"append":     m.append,
		"append one": m.appendOne,
		"claim":      m.claim,
		"scoped":     m.claimScoped,
		"stale":      m.rearmStale,
		"rearm":      m.rearm,
		"complete":   m.end(ends()[0]),
		"fail":       m.end(ends()[1]),
		"cancel":     m.end(ends()[2]),
		"end many":   m.endMany,
		"retry":      m.retry,
		"get":        m.get,
		"wait":       m.wait,
	}
}

// compare checks every row, and the store's own invariant.
func (m *machine) compare(rt *rapid.T) {
	for _, f := range m.flows {
		want := m.model.rows(f.namespace, f.id)
		var got []outbox.Row
		for r, err := range m.store.Scan(m.ctx(), f.namespace, f.id) {
			if err != nil {
				rt.Fatalf("scan of %+v: %v", f, err)
			}
			got = append(got, r)
		}
		if len(got) != len(want) {
			rt.Fatalf("scan of %+v has %d rows, want %d", f, len(got), len(want))
		}
		for i := range got {
			if d := diff(want[i], got[i]); d != "" {
				rt.Fatalf("scan of %+v, row %d (-want +got):\n%s", f, i, d)
			}
		}
	}
	if m.b.Invariant != nil {
		if err := m.b.Invariant(m.t); err != nil {
			rt.Fatalf("invariant: %v", err)
		}
	}
}

// agree checks that both calls failed, with one code, or neither.
func (m *machine) agree(rt *rapid.T, what string, got, want error) {
	if umbel.CodeOf(got) != umbel.CodeOf(want) || (got == nil) != (want == nil) {
		rt.Fatalf("%s: %v, want %v", what, got, want)
	}
}

// visible draws an instant. Where time cannot be held still it is far from now, on either side.
func (m *machine) visible(rt *rapid.T) time.Time {
	ms := time.Duration(rapid.IntRange(0, 6).Draw(rt, "ms")) * time.Millisecond
	fraction := time.Duration(rapid.SampledFrom([]int{0, 0, 1, 999_999}).Draw(rt, "ns"))
	sides := []time.Duration{-time.Hour, -time.Hour, 24 * time.Hour}
	if m.b.Virtual {
		sides = append(sides, m.now().Sub(m.base))
	}
	return m.base.Add(rapid.SampledFrom(sides).Draw(rt, "side") + ms + fraction)
}

func (m *machine) flow(rt *rapid.T) flow { return rapid.SampledFrom(m.flows).Draw(rt, "workflow") }

// key draws a row, sometimes one that does not exist.
func (m *machine) key(rt *rapid.T) outbox.Key {
	f := m.flow(rt)
	n := len(m.model.rows(f.namespace, f.id))
	return outbox.Key{Namespace: f.namespace, WorkflowID: f.id, Ordinal: int64(rapid.IntRange(0, n).Draw(rt, "ordinal"))}
}

func (m *machine) append(rt *rapid.T) {
	f := m.flow(rt)
	n := len(m.model.rows(f.namespace, f.id))
	from := max(0, n+rapid.IntRange(-3, 0).Draw(rt, "overlap"))
	count := rapid.SampledFrom([]int{0, 1, 2, 5, 30, 130}).Draw(rt, "count")
	mixed := rapid.Bool().Draw(rt, "mixed")
	r := m.row(rt, f)
	var rows []outbox.Row
	for i := range count {
		if mixed && i%7 == 0 {
			r = m.row(rt, f)
		}
		r.Ordinal = int64(from + i)
		r.Input.Data = fmt.Appendf(nil, "%d of %d", i, count)
		rows = append(rows, r)
	}
	if rapid.IntRange(0, 9).Draw(rt, "gap") == 9 && count > 0 {
		rows[count-1].Ordinal = int64(from + count + 1)
	}
	m.add(rt, rows)
}

func (m *machine) appendOne(rt *rapid.T) {
	f := m.flow(rt)
	r := m.row(rt, f)
	r.Ordinal = int64(len(m.model.rows(f.namespace, f.id)))
	if rapid.Bool().Draw(rt, "now") {
		r.VisibleAfter = time.Time{}
	}
	m.add(rt, []outbox.Row{r})
}

func (m *machine) row(rt *rapid.T, f flow) outbox.Row {
	return outbox.Row{
		Namespace: f.namespace, WorkflowID: f.id, VisibleAfter: m.visible(rt),
		TaskQueue:    rapid.SampledFrom([]string{"", "q", "a:b"}).Draw(rt, "queue"),
		Node:         rapid.SampledFrom([]string{"", "", "n1", "b:c"}).Draw(rt, "node"),
		ActivityType: rapid.SampledFrom([]string{"t", "u"}).Draw(rt, "type"),
		Input: umbel.Payload{
			ContentType: rapid.SampledFrom([]string{"", "text/plain"}).Draw(rt, "content type"),
			Data:        rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(rt, "input"),
		},
	}
}

// add appends to both. "Now" is when the store says it was.
func (m *machine) add(rt *rapid.T, rows []outbox.Row) {
	before := m.now()
	got := m.store.Append(m.ctx(), rows)
	after := m.now()
	for i := range rows {
		if got == nil && rows[i].VisibleAfter.IsZero() {
			rows[i].VisibleAfter = m.observed(rt, rows[i].Key(), before, after)
		}
	}
	m.agree(rt, "append", got, m.model.Append(m.ctx(), rows))
}

// observed returns when the store says that a row is due which was to be due at once.
func (m *machine) observed(rt *rapid.T, key outbox.Key, before, after time.Time) time.Time {
	r, err := m.store.Get(m.ctx(), key)
	if err != nil {
		rt.Fatalf("get: %v", err)
	}
	if err := within(r.VisibleAfter, before, after); err != nil {
		rt.Fatalf("%s is due now: %v", nameOf(r), err)
	}
	return r.VisibleAfter
}

func (m *machine) claim(rt *rapid.T) {
	limit := m.limit(rt)
	before := m.now()
	got, err := m.store.Claim(m.ctx(), limit)
	m.claimed(rt, limit, got, err, before, func(outbox.Row) bool { return true })
}

func (m *machine) claimScoped(rt *rapid.T) {
	scope := outbox.Scope{
		Namespace: rapid.SampledFrom([]string{"", "default", "n:1", "n"}).Draw(rt, "namespace"),
		TaskQueue: rapid.SampledFrom([]string{"", "q", "a:b", "a"}).Draw(rt, "queue"),
		Node:      rapid.SampledFrom([]string{"", "n1", "b:c", "c"}).Draw(rt, "node"),
	}
	limit := m.limit(rt)
	before := m.now()
	got, err := m.store.ClaimScoped(m.ctx(), scope, limit)
	m.claimed(rt, limit, got, err, before, scope.Admits)
}

func (m *machine) limit(rt *rapid.T) int {
	return rapid.SampledFrom([]int{1000, 3, 2, 50, 1, 10}).Draw(rt, "limit")
}

// claimed checks a claim: of each shard the first rows, in order, merged; and as many as there are. The model
// then claims the same.
func (m *machine) claimed(rt *rapid.T, limit int, got []outbox.Row, err error, before time.Time, admits func(outbox.Row) bool) {
	if err != nil {
		rt.Fatalf("claim: %v", err)
	}
	after := m.now()
	shard := func(r outbox.Row) int {
		if m.b.Shard == nil {
			return 0
		}
		return m.b.Shard(r.Namespace, r.WorkflowID)
	}
	taken := map[int]int{}
	at := map[outbox.Key]time.Time{}
	for _, r := range got {
		if err := within(r.ClaimedAt, before, after); err != nil {
			rt.Fatalf("claimed at: %v", err)
		}
		taken[shard(r)]++
		at[r.Key()] = r.ClaimedAt
	}
	var want []outbox.Row
	for sh, n := range taken {
		want = append(want, m.model.claim(n, func(r outbox.Row) bool { return admits(r) && shard(r) == sh })...)
	}
	slices.SortFunc(want, outbox.Compare)
	if d := gocmp.Diff(keysOf(want), keysOf(got)); d != "" {
		rt.Fatalf("claim of %d (-want +got):\n%s", limit, d)
	}
	for i := range want {
		m.model.find(want[i].Key()).ClaimedAt = at[want[i].Key()]
		want[i].ClaimedAt = at[want[i].Key()]
		if d := diffAll(want[i], got[i]); d != "" {
			rt.Fatalf("claim, row %d (-want +got):\n%s", i, d)
		}
	}
	if len(got) == limit {
		return
	}
	if rest := m.model.all(func(r outbox.Row) bool {
		return r.Status == outbox.Pending && !r.VisibleAfter.After(before) && admits(r)
	}); len(rest) > 0 || len(got) > limit {
		rt.Fatalf("claim of %d returned %d and left %d", limit, len(got), len(rest))
	}
}

// rearmStale lets the store choose which of too many stale rows go back.
func (m *machine) rearmStale(rt *rapid.T) {
	olderThan := m.base.Add(-time.Hour)
	if held := m.model.all(func(r outbox.Row) bool { return r.Status == outbox.Claimed }); len(held) > 0 {
		r := rapid.SampledFrom(held).Draw(rt, "held")
		olderThan = r.ClaimedAt.Add(rapid.SampledFrom([]time.Duration{time.Millisecond, 0}).Draw(rt, "older"))
	}
	limit, visible := m.limit(rt), m.visible(rt)
	got, err := m.store.RearmStale(m.ctx(), olderThan, limit, visible)
	if err != nil {
		rt.Fatalf("re-arm stale: %v", err)
	}
	stale := m.model.stale(olderThan)
	if want := min(limit, len(stale)); len(got) != want {
		rt.Fatalf("re-armed %d stale rows of %d, want %d", len(got), len(stale), want)
	}
	for _, r := range got {
		k := r.Key()
		i := slices.IndexFunc(stale, func(s *outbox.Row) bool { return s.Key() == k })
		if i < 0 {
			rt.Fatalf("re-armed %s, which is not stale, or twice", nameOf(r))
		}
		m.model.putBack(stale[i], stale[i].Attempt, visible)
		if d := diff(*stale[i], r); d != "" {
			rt.Fatalf("re-armed (-want +got):\n%s", d)
		}
		stale = slices.Delete(stale, i, i+1)
	}
}

func (m *machine) rearm(rt *rapid.T) {
	var given []outbox.Row
	seen := map[outbox.Key]bool{}
	for range rapid.IntRange(0, 4).Draw(rt, "rows") {
		k := m.key(rt)
		if seen[k] {
			continue
		}
		seen[k] = true
		r := row(k.WorkflowID, k.Ordinal)
		if known := m.model.find(k); known != nil {
			r = copyOf(known)
		}
		r.Namespace, r.VisibleAfter = k.Namespace, m.visible(rt)
		if rapid.IntRange(0, 3).Draw(rt, "now") == 0 {
			r.VisibleAfter = time.Time{}
		}
		given = append(given, r)
	}
	before := m.now()
	err := m.store.Rearm(m.ctx(), given)
	after := m.now()
	if err == nil {
		for i, r := range given {
			if known := m.model.find(r.Key()); r.VisibleAfter.IsZero() && known != nil && !known.Status.Terminal() {
				given[i].VisibleAfter = m.observed(rt, r.Key(), before, after)
			}
		}
	}
	m.agree(rt, "re-arm", err, m.model.Rearm(m.ctx(), given))
}

func (m *machine) end(e end) func(*rapid.T) {
	return func(rt *rapid.T) {
		k := m.key(rt)
		m.agree(rt, e.name, e.do(m.store, m.ctx(), k), e.do(m.model, m.ctx(), k))
	}
}

// endMany ends a range, to make long holes.
func (m *machine) endMany(rt *rapid.T) {
	k := m.key(rt)
	e := rapid.SampledFrom(ends()).Draw(rt, "end")
	for range rapid.SampledFrom([]int{2, 8, 40}).Draw(rt, "count") {
		m.agree(rt, e.name, e.do(m.store, m.ctx(), k), e.do(m.model, m.ctx(), k))
		k.Ordinal++
	}
}

func (m *machine) retry(rt *rapid.T) {
	k, attempt, visible := m.key(rt), rapid.IntRange(-1, umbel.MaxAttempts-1).Draw(rt, "attempt"), m.visible(rt)
	m.agree(rt, "retry", m.store.Retry(m.ctx(), k, attempt, visible), m.model.Retry(m.ctx(), k, attempt, visible))
}

func (m *machine) get(rt *rapid.T) {
	k := m.key(rt)
	if rapid.Bool().Draw(rt, "no namespace") && k.Namespace == umbel.DefaultNamespace {
		k.Namespace = ""
	}
	got, gotErr := m.store.Get(m.ctx(), k)
	want, wantErr := m.model.Get(m.ctx(), k)
	m.agree(rt, "get", gotErr, wantErr)
	if errors.Is(gotErr, umbel.ErrNotFound) {
		return
	}
	if d := diff(want, got); d != "" {
		rt.Fatalf("get (-want +got):\n%s", d)
	}
}

// wait moves a virtual clock, by parts of a millisecond too.
func (m *machine) wait(rt *rapid.T) {
	if !m.b.Virtual {
		return
	}
	d := rapid.SampledFrom([]time.Duration{time.Microsecond, 500 * time.Microsecond, time.Millisecond, 3 * time.Millisecond, 25 * time.Hour}).Draw(rt, "d")
	m.b.WaitUntil(m.t, m.now().Add(d))
}
