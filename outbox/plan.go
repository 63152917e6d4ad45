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
// many rows as the merge took of it. Whoever claims at the same time may take some of them; it then reads again.
func (o *Redis) claimInOrder(ctx context.Context, limit int, admits func(keys.Route) bool) ([]Row, error) {
	if limit < 1 {
		return nil, umbel.Invalid("limit", strconv.Itoa(limit), "must be at least 1")
	}
	var out []Row
	for range maxCarve {
		pairs, plan, err := o.plan(ctx, limit-len(out), admits)
		if err != nil {
			return out, err
		}
		before := len(out)
		taken := make([]int, len(pairs))
		visible := map[Key]time.Time{}
		for _, r := range plan {
			taken[r.pair]++
			visible[r.Key()] = r.VisibleAfter
		}
		for i := range pairs {
			rows, err := o.claimOf(ctx, pairs[i], taken[i])
			for _, r := range rows {
				r.VisibleAfter = visible[r.Key()]
				out = append(out, r)
			}
			if err != nil {
				return out, err
			}
		}
		if len(out)-before >= len(plan) {
			break
		}
	}
	slices.SortStableFunc(out, Compare)
	return out, nil
}

// plan reads which rows to claim, and of which pairs.
func (o *Redis) plan(ctx context.Context, limit int, admits func(keys.Route) bool) ([]Pair, []planned, error) {
	var pairs []Pair
	var plan []planned
	for shard := range o.space.Shards() {
		ready, now, err := o.Ready(ctx, shard)
		if err != nil {
			return nil, nil, err
		}
		var routes []keys.Route
		for _, r := range ready {
			if !r.At.After(now) && admits(r.Route) {
				routes = append(routes, r.Route)
			}
		}
		if len(routes) == 0 {
			continue
		}
		found, err := o.Pairs(ctx, shard, routes, now, math.MaxInt32)
		if err != nil {
			return nil, nil, err
		}
		for _, p := range found {
			rows, err := o.dueRows(ctx, p, now, limit)
			if err != nil {
				return nil, nil, err
			}
			for _, r := range rows {
				plan = append(plan, planned{Row: r, pair: len(pairs)})
			}
			pairs = append(pairs, p)
		}
	}
	slices.SortStableFunc(plan, func(a, b planned) int { return Compare(a.Row, b.Row) })
	return pairs, plan[:min(limit, len(plan))], nil
}

// claimOf claims up to n rows of a pair.
func (o *Redis) claimOf(ctx context.Context, p Pair, n int) ([]Row, error) {
	var out []Row
	for more := true; more && n > 0; {
		p.Most = min(n, MaxClaimRows)
		g, err := o.Take(ctx, p.Run.Shard.Index, o.lease, []Pair{p}, []Taker{{Worker: storeWorker, Want: p.Most}})
		if err != nil {
			return out, err
		}
		for _, h := range g.Rows[0] {
			q := p.Run.Routes[h.Route]
			out = append(out, Row{
				Namespace: p.Run.Namespace, WorkflowID: p.Run.WorkflowID, Ordinal: h.Ordinal, RunID: p.Run.Public(),
				TaskQueue: q.TaskQueue, Node: q.Node, ActivityType: q.Type, Input: h.Input,
				Status: Claimed, Attempt: h.Tries, ClaimedAt: h.ClaimedAt,
			})
		}
		if len(g.Broken) > 0 {
			return out, o.broken("claim", p.Run.WorkflowID, p.Run.ID, errors.Join(g.Broken...))
		}
		n -= len(g.Rows[0])
		more = len(g.More) > 0
	}
	return out, nil
}

// dueRows reads up to limit rows of a pair that are due.
func (o *Redis) dueRows(ctx context.Context, p Pair, now time.Time, limit int) ([]Row, error) {
	k := p.Run.Keys
	bits, err := o.holes(ctx, p.Run)
	if err != nil {
		return nil, err
	}
	by := redis.ZRangeBy{Min: "-inf", Max: strconv.FormatInt(now.UnixMilli(), 10), Count: int64(limit)}
	var out []Row
	for ; ; by.Offset += by.Count {
		var due []redis.Z
		err := o.scripts.Retry(ctx, func() (err error) {
			due, err = o.rdb.ZRangeByScoreWithScores(ctx, k.Due(p.Index), &by).Result()
			return err
		})
		if err != nil {
			return nil, o.fail("read due rows", err)
		}
		for _, z := range due {
			s, _ := z.Member.(string)
			m, err := parseMember(s, z.Score)
			if err != nil {
				return nil, o.broken("read due rows", p.Run.WorkflowID, p.Run.ID, err)
			}
			for ordinal := m.first; ordinal <= m.last && len(out) < limit; ordinal++ {
				if m.fresh && bits.has(ordinal) {
					continue
				}
				out = append(out, Row{
					Namespace: p.Run.Namespace, WorkflowID: p.Run.WorkflowID, Ordinal: ordinal, VisibleAfter: m.visible(),
				})
			}
		}
		if len(out) == limit || int64(len(due)) < by.Count {
			return out, nil
		}
	}
}

// bitmap is a set of ordinals as Redis keeps it.
type bitmap string

func (b bitmap) has(ordinal int64) bool {
	return ordinal/8 < int64(len(b)) && b[ordinal/8]>>(7-ordinal%8)&1 == 1
}

// holes reads which ordinals are resolved, if some may be within spans.
func (o *Redis) holes(ctx context.Context, run *Run) (bitmap, error) {
	var bits string
	err := o.scripts.Retry(ctx, func() error {
		n, err := o.rdb.HGet(ctx, run.Keys.Record(), "holes").Int64()
		if err == nil && n > 0 {
			bits, err = o.rdb.Get(ctx, run.Keys.Resolved()).Result()
		}
		if errors.Is(err, redis.Nil) {
			return nil
		}
		return err
	})
	return bitmap(bits), o.fail("read due rows", err)
}
