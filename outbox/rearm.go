package outbox

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/lua"
)

// RearmStale implements [Store].
func (o *Redis) RearmStale(ctx context.Context, olderThan time.Time, limit int, visible time.Time) ([]Row, error) {
	if limit < 1 {
		return nil, umbel.Invalid("limit", strconv.Itoa(limit), "must be at least 1")
	}
	due, err := dueAt(visible)
	if err != nil {
		return nil, err
	}
	type stale struct {
		shard int
		Lease
	}
	var all []stale
	for shard := range o.space.Shards() {
		leases, err := o.claims(ctx, shard)
		if err != nil {
			return nil, err
		}
		for _, l := range leases {
			if l.ClaimedAt.Before(olderThan) {
				all = append(all, stale{shard, l})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b stale) int { return a.ClaimedAt.Compare(b.ClaimedAt) })
	var out []Row
	for _, s := range all {
		rows, err := o.rearmClaim(ctx, s.shard, s.Lease, limit-len(out), due)
		if err != nil {
			return out, err
		}
		if out = append(out, rows...); len(out) == limit {
			break
		}
	}
	return out, nil
}

// claims reads the records of all claims of a shard.
func (o *Redis) claims(ctx context.Context, shard int) ([]Lease, error) {
	var nonces []string
	err := o.scripts.Retry(ctx, func() (err error) {
		nonces, err = o.rdb.ZRange(ctx, o.space.Shard(shard).Claims(), 0, -1).Result()
		return err
	})
	if err != nil {
		return nil, o.fail("read claims", err)
	}
	return o.Leases(ctx, shard, nonces)
}

// rearmClaim puts up to limit rows back that a claim still holds.
func (o *Redis) rearmClaim(ctx context.Context, shard int, l Lease, limit int, due int64) ([]Row, error) {
	run, err := o.Run(ctx, shard, umbel.RunID(l.RunID))
	if err != nil || run == nil {
		return nil, err
	}
	var out []Row
	for part := range slices.Chunk(l.Ordinals, MaxSettle) {
		vs, err := o.peek(ctx, run, part...)
		if err != nil {
			return out, err
		}
		g := lua.Group{Verb: lua.Requeue, Nonce: l.Nonce, Attempt: 1, Route: l.Route}
		var ordinals []int64
		for _, v := range vs {
			if v.status == Claimed && v.nonce == l.Nonce && len(out)+len(ordinals) < limit {
				g.Items = append(g.Items, lua.Item{Ordinal: v.ordinal, Due: due})
				ordinals = append(ordinals, v.ordinal)
			}
		}
		if len(ordinals) == 0 {
			continue
		}
		r, err := o.Settle(ctx, Settlement{Run: run, Groups: []lua.Group{g}})
		if err != nil {
			return out, err
		}
		if r.Outcome != "ok" { // the run has ended meanwhile
			return out, nil
		}
		refused := map[int64]bool{}
		for _, x := range r.Exceptions {
			refused[ordinals[x.Item]] = true
		}
		ordinals = slices.DeleteFunc(ordinals, func(n int64) bool { return refused[n] })
		if run, vs, err = o.rows(ctx, run, ordinals, spans{}); err != nil {
			return out, err
		}
		for i := range vs {
			row, err := o.whole(ctx, run, &vs[i])
			if err != nil {
				return out, err
			}
			row.Status, row.ClaimedAt = Pending, time.Time{} // somebody may have claimed it since
			out = append(out, row)
		}
	}
	return out, nil
}
