package outbox

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel"
)

// view is how a row stands, read in one transaction.
type view struct {
	status  Status // "" if there is no such row
	attempt int    // that was recorded, from 1; terminal rows only
	tries   int
	route   int
	fresh   bool
	span    string // that the fresh row is in
	visible time.Time
	nonce   string
	claimed time.Time
	in      input
}

// peek reads a row by ordinal, in constant time but for a fresh row's span, which is searched for.
func (o *Redis) peek(ctx context.Context, run *Run, ordinal int64) (view, error) {
	var v view
	k := run.Keys
	var n, rec, attempt, chunk, large *redis.StringCmd
	var bits [4]*redis.IntCmd
	err := o.scripts.Retry(ctx, func() error {
		_, err := o.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
			n = p.HGet(ctx, k.Record(), "n")
			for i, key := range []string{k.Resolved(), k.Failed(), k.Cancelled(), k.Rest()} {
				bits[i] = p.GetBit(ctx, key, ordinal)
			}
			rec = p.HGet(ctx, k.Rows(), strconv.FormatInt(ordinal, 10))
			attempt = p.HGet(ctx, k.Attempts(), strconv.FormatInt(ordinal, 10))
			chunk = p.HGet(ctx, k.Inputs(), strconv.FormatInt(ordinal/run.ChunkRows, 10))
			large = p.HGet(ctx, k.Inputs(), "b"+strconv.FormatInt(ordinal, 10))
			return nil
		})
		if errors.Is(err, redis.Nil) {
			return nil
		}
		return err
	})
	if err != nil {
		return v, o.fail("read row", err)
	}
	if rows, _ := n.Int64(); ordinal >= rows {
		return v, nil
	}
	rd := chunkReader{
		rows: run.ChunkRows, shared: run.ContentType, chunks: map[int64]string{ordinal / run.ChunkRows: chunk.Val()}, at: -1,
	}
	if v.in, err = rd.input(ordinal); err != nil {
		return v, o.broken("read row", run.WorkflowID, run.ID, fmt.Errorf("ordinal %d: %w", ordinal, err))
	}
	if v.in.large {
		v.in.payload.Data = []byte(large.Val())
	}
	v.route = v.in.route
	switch {
	case bits[0].Val() == 1:
		v.status, v.attempt = Done, 1
		if s := attempt.Val(); s != "" {
			v.attempt, _ = strconv.Atoi(s)
		}
		v.tries = v.attempt - 1
		if bits[1].Val() == 1 {
			v.status = Failed
		} else if bits[2].Val() == 1 || bits[3].Val() == 1 {
			v.status, v.attempt = Cancelled, 0
		}
		return v, nil
	case rec.Val() != "":
		r, err := parseRecord(rec.Val())
		if err != nil {
			return v, o.broken("read row", run.WorkflowID, run.ID, err)
		}
		v.tries, v.route, v.nonce = r.tries, r.route, r.nonce
		if r.claimed {
			v.status = Claimed
			return v, o.claimedAt(ctx, run, &v)
		}
		v.status = Pending
		return v, o.due(ctx, run, ordinal, &v)
	}
	v.status, v.fresh = Pending, true
	return v, o.due(ctx, run, ordinal, &v)
}

// claimedAt reads when the claim was made; a claim without a record has no such instant.
func (o *Redis) claimedAt(ctx context.Context, run *Run, v *view) error {
	leases, err := o.Leases(ctx, run.Shard.Index, []string{v.nonce})
	if err == nil && len(leases) == 1 {
		v.claimed = leases[0].ClaimedAt
	}
	return err
}

// due finds when a pending row is due: a fresh one by its span.
func (o *Redis) due(ctx context.Context, run *Run, ordinal int64, v *view) error {
	key := run.Keys.Due(v.route)
	if !v.fresh {
		score, err := o.rdb.ZScore(ctx, key, fmt.Sprintf("%08dr", ordinal)).Result()
		if err == nil {
			v.visible = time.UnixMilli(int64(score)).UTC()
		} else if !errors.Is(err, redis.Nil) {
			return o.fail("read row", err)
		}
		return nil
	}
	for m, err := range o.members(ctx, key) {
		if err != nil {
			return err
		}
		if m.fresh && m.first <= ordinal && ordinal <= m.last {
			v.span, v.visible = m.raw, m.visible()
			return nil
		}
	}
	return nil
}

// members yields a due set, a page at a time.
func (o *Redis) members(ctx context.Context, key string) func(func(member, error) bool) {
	const page = 1000
	return func(yield func(member, error) bool) {
		for at := int64(0); ; at += page {
			var zs []redis.Z
			err := o.scripts.Retry(ctx, func() (err error) {
				zs, err = o.rdb.ZRangeWithScores(ctx, key, at, at+page-1).Result()
				return err
			})
			if err != nil {
				yield(member{}, o.fail("read due rows", err))
				return
			}
			for _, z := range zs {
				s, _ := z.Member.(string)
				m, err := parseMember(s, z.Score)
				if err != nil {
					err = o.broken("read due rows", "", "", err)
				}
				if !yield(m, err) || err != nil {
					return
				}
			}
			if len(zs) < page {
				return
			}
		}
	}
}

// row makes a [Row] of a view.
func (v view) row(run *Run, ordinal int64) Row {
	r := Row{
		Namespace: run.Namespace, WorkflowID: run.WorkflowID, Ordinal: ordinal, RunID: run.Public(),
		Input: v.in.payload, Status: v.status, Attempt: v.tries, VisibleAfter: v.visible, ClaimedAt: v.claimed,
	}
	if v.route < len(run.Routes) {
		q := run.Routes[v.route]
		r.TaskQueue, r.Node, r.ActivityType = q.TaskQueue, q.Node, q.Type
	}
	return r
}

func (k Key) validate() error {
	if err := umbel.ValidateLabel("namespace", k.Namespace); err != nil {
		return err
	}
	if err := umbel.ValidateName("workflow ID", string(k.WorkflowID)); err != nil {
		return err
	}
	if k.Ordinal < 0 || k.Ordinal > maxOrdinal {
		return umbel.Invalid("ordinal", strconv.FormatInt(k.Ordinal, 10), "must be from 0 to 16777215")
	}
	return nil
}
