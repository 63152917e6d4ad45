package outbox

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/lua"
)

// Get implements [Store].
func (o *Redis) Get(ctx context.Context, k Key) (Row, error) {
	if err := k.validate(); err != nil {
		return Row{}, err
	}
	k.Namespace = cmp.Or(k.Namespace, umbel.DefaultNamespace)
	run, err := o.lookup(ctx, k)
	if err != nil {
		return Row{}, err
	}
	if run != nil {
		v, err := o.peek(ctx, run, k.Ordinal)
		if err != nil || v.status != "" {
			return v.row(run, k.Ordinal), err
		}
	}
	return Row{}, &umbel.Error{
		Code: umbel.CodeNotFound, Op: "get", WorkflowID: k.WorkflowID, Field: "ordinal",
		Value: strconv.FormatInt(k.Ordinal, 10), Reason: "is no row of the workflow's current run", NotApplied: true,
	}
}

// Scan implements [Store].
func (o *Redis) Scan(ctx context.Context, namespace string, id umbel.WorkflowID) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		k := Key{Namespace: cmp.Or(namespace, umbel.DefaultNamespace), WorkflowID: id}
		for ; ; k.Ordinal++ {
			r, err := o.Get(ctx, k)
			if errors.Is(err, umbel.ErrNotFound) || k.Ordinal > maxOrdinal {
				return
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

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
		g := lua.Group{Verb: lua.Requeue, Nonce: l.Nonce, Attempt: 1, Route: l.Route}
		var rows []Row
		for _, ordinal := range part {
			v, err := o.peek(ctx, run, ordinal)
			if err != nil {
				return out, err
			}
			if v.nonce == l.Nonce && len(out)+len(rows) < limit {
				g.Items = append(g.Items, lua.Item{Ordinal: ordinal, Due: due})
				rows = append(rows, v.row(run, ordinal))
			}
		}
		if len(rows) == 0 {
			continue
		}
		r, err := o.Settle(ctx, Settlement{Run: run, Groups: []lua.Group{g}})
		if err != nil {
			return out, err
		}
		refused := map[int]bool{}
		for _, x := range r.Exceptions {
			refused[x.Item] = true
		}
		for i, row := range rows {
			if r.Outcome != "ok" || refused[i] {
				continue
			}
			again, err := o.Get(ctx, row.Key())
			if err != nil {
				return out, err
			}
			again.Status, again.ClaimedAt = Pending, time.Time{} // somebody may have claimed it since
			out = append(out, again)
		}
	}
	return out, nil
}
