package outbox

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/keys"
	"github.com/umbelhq/umbel/internal/lua"
)

// storeWorker is the worker that claims through [Store] are made by.
const storeWorker = "outbox"

// Claim implements [Store].
func (o *Redis) Claim(ctx context.Context, limit int) ([]Row, error) {
	return o.claimInOrder(ctx, limit, func(keys.Route) bool { return true })
}

// ClaimScoped implements [Store]. The scope chooses the routes, and a claim takes a row only from its route, so
// that the scope holds in the same step as the claim.
func (o *Redis) ClaimScoped(ctx context.Context, scope Scope, limit int) ([]Row, error) {
	if err := scope.Validate(); err != nil {
		return nil, err
	}
	return o.claimInOrder(ctx, limit, scope.AdmitsRoute)
}

// AdmitsRoute reports whether rows of a route are in the scope.
func (s Scope) AdmitsRoute(r keys.Route) bool {
	return s.Admits(Row{Namespace: r.Namespace, TaskQueue: r.TaskQueue, Node: r.Node})
}

// planned is a due row that a claim should take.
type planned struct {
	Row
	pair int
}

// claimInOrder claims in the order of [Compare]: it reads what is due, merges it, and claims of each run as
// many rows as the merge took of it. Whoever claims at the same time may take some of them.
func (o *Redis) claimInOrder(ctx context.Context, limit int, admits func(keys.Route) bool) ([]Row, error) {
	if limit < 1 {
		return nil, umbel.Invalid("limit", strconv.Itoa(limit), "must be at least 1")
	}
	var pairs []Pair
	var plan []planned
	for shard := range o.space.Shards() {
		ready, now, err := o.Ready(ctx, shard)
		if err != nil {
			return nil, err
		}
		var routes []keys.Route
		for _, r := range ready {
			if !r.At.After(now) && admits(r.Route) {
				routes = append(routes, r.Route)
			}
		}
		found, err := o.Pairs(ctx, shard, routes, now, math.MaxInt32)
		if err != nil {
			return nil, err
		}
		for _, p := range found {
			rows, err := o.dueRows(ctx, p, now, limit)
			if err != nil {
				return nil, err
			}
			for _, r := range rows {
				plan = append(plan, planned{Row: r, pair: len(pairs)})
			}
			pairs = append(pairs, p)
		}
	}
	slices.SortStableFunc(plan, func(a, b planned) int { return Compare(a.Row, b.Row) })
	plan = plan[:min(limit, len(plan))]
	taken := make([]int, len(pairs))
	visible := map[Key]time.Time{}
	for _, r := range plan {
		taken[r.pair]++
		visible[r.Key()] = r.VisibleAfter
	}
	var out []Row
	for i := range pairs {
		rows, err := o.claimOf(ctx, pairs[i], taken[i])
		if err != nil {
			return out, err
		}
		for _, r := range rows {
			r.VisibleAfter = visible[r.Key()]
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, Compare)
	return out, nil
}

// claimOf claims up to n rows of a pair.
func (o *Redis) claimOf(ctx context.Context, p Pair, n int) ([]Row, error) {
	var out []Row
	for n > 0 {
		p.Most = min(n, MaxClaimRows)
		g, err := o.Take(ctx, p.Run.Shard.Index, o.lease, []Pair{p}, []Taker{{Worker: storeWorker, Want: p.Most}})
		if err != nil {
			return out, err
		}
		if len(g.Broken) > 0 {
			return out, o.broken("claim", p.Run.WorkflowID, p.Run.ID, errors.Join(g.Broken...))
		}
		if len(g.Rows[0]) == 0 {
			return out, nil
		}
		for _, h := range g.Rows[0] {
			q := p.Run.Routes[h.Route]
			out = append(out, Row{
				Namespace: p.Run.Namespace, WorkflowID: p.Run.WorkflowID, Ordinal: h.Ordinal, RunID: p.Run.Public(),
				TaskQueue: q.TaskQueue, Node: q.Node, ActivityType: q.Type, Input: h.Input,
				Status: Claimed, Attempt: h.Tries, ClaimedAt: h.ClaimedAt,
			})
		}
		n -= len(g.Rows[0])
	}
	return out, nil
}

// dueRows reads up to limit rows of a pair that are due.
func (o *Redis) dueRows(ctx context.Context, p Pair, now time.Time, limit int) ([]Row, error) {
	k := p.Run.Keys
	var due *redis.ZSliceCmd
	var holes, resolved *redis.StringCmd
	err := o.scripts.Retry(ctx, func() error {
		_, err := o.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			due = pipe.ZRangeByScoreWithScores(ctx, k.Due(p.Index), &redis.ZRangeBy{
				Min: "-inf", Max: strconv.FormatInt(now.UnixMilli(), 10), Count: int64(limit),
			})
			holes = pipe.HGet(ctx, k.Record(), "holes")
			return nil
		})
		if errors.Is(err, redis.Nil) {
			err = nil
		}
		if n, _ := holes.Int64(); n > 0 && err == nil {
			resolved = o.rdb.Get(ctx, k.Resolved())
			err = resolved.Err()
		}
		return err
	})
	if err != nil {
		return nil, o.fail("read due rows", err)
	}
	var bits string
	if resolved != nil {
		bits = resolved.Val()
	}
	open := func(ordinal int64) bool {
		return ordinal/8 >= int64(len(bits)) || bits[ordinal/8]>>(7-ordinal%8)&1 == 0
	}
	var out []Row
	for _, z := range due.Val() {
		s, _ := z.Member.(string)
		m, err := parseMember(s, z.Score)
		if err != nil {
			return nil, o.broken("read due rows", p.Run.WorkflowID, p.Run.ID, err)
		}
		for ordinal := m.first; ordinal <= m.last && len(out) < limit; ordinal++ {
			if open(ordinal) {
				out = append(out, Row{
					Namespace: p.Run.Namespace, WorkflowID: p.Run.WorkflowID, Ordinal: ordinal, VisibleAfter: m.visible(),
				})
			}
		}
	}
	return out, nil
}

// Complete implements [Store].
func (o *Redis) Complete(ctx context.Context, k Key) error {
	return o.change(ctx, "complete", k, lua.Complete, lua.Item{})
}

// Fail implements [Store].
func (o *Redis) Fail(ctx context.Context, k Key) error {
	return o.change(ctx, "fail", k, lua.Fail, lua.Item{})
}

// Cancel implements [Store].
func (o *Redis) Cancel(ctx context.Context, k Key) error {
	return o.change(ctx, "cancel", k, lua.CancelIt, lua.Item{})
}

// Retry implements [Store].
func (o *Redis) Retry(ctx context.Context, k Key, attempt int, visible time.Time) error {
	if attempt < 0 || attempt > umbel.MaxAttempts {
		return umbel.Invalid("attempt", strconv.Itoa(attempt), "must be from 0 to "+strconv.Itoa(umbel.MaxAttempts))
	}
	due, err := dueAt(visible)
	if err != nil {
		return err
	}
	return o.change(ctx, "retry", k, lua.Requeue, lua.Item{Due: due, Tries: strconv.Itoa(attempt)})
}

// dueAt is an instant as scripts want it: 0 for now.
func dueAt(visible time.Time) (int64, error) {
	if visible.IsZero() {
		return 0, nil
	}
	ms := CeilMilli(visible).UnixMilli()
	if ms <= 0 {
		return 0, umbel.Invalid("visible_after", visible.Format(time.RFC3339), "must be after 1970")
	}
	return ms, nil
}

// Rearm implements [Store].
func (o *Redis) Rearm(ctx context.Context, rows []Row) error {
	for _, r := range rows {
		if err := r.Key().validate(); err != nil {
			return err
		}
		if _, err := dueAt(r.VisibleAfter); err != nil {
			return err
		}
	}
	for _, r := range rows {
		run, err := o.lookup(ctx, r.Key())
		if err != nil {
			return err
		}
		if run == nil || r.RunID != "" && r.RunID != run.ID {
			continue
		}
		due, _ := dueAt(r.VisibleAfter)
		if err := o.change(ctx, "rearm", r.Key(), lua.Requeue, lua.Item{Due: due}); err != nil {
			return err
		}
	}
	return nil
}
