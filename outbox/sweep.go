package outbox

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel/internal/lua"
)

// Sweep names up to most lapsed claims of each shard, in one round trip. gap is how long a shard may go without
// a sweep before its claims are given another lease. Claims and errors stand at the index of their shard; a claim
// whose record is damaged is an error, and those beside it are named all the same.
func (o *Redis) Sweep(ctx context.Context, shards []int, gap time.Duration, most int) ([][]Lease, []error) {
	calls := make([]lua.Call, len(shards))
	for i, n := range shards {
		sh := o.space.Shard(n)
		calls[i] = lua.Sweep{Sweep: sh.Sweep(), Claims: sh.Claims(), Leases: sh.Leases(), Gap: gap.Milliseconds(), Most: most}.Call()
	}
	raw, errs := o.scripts.RunAll(ctx, calls)
	out := make([][]Lease, len(shards))
	for i := range shards {
		if errs[i] != nil {
			errs[i] = o.fail("sweep", errs[i])
			continue
		}
		r, err := lua.ParseSweep(raw[i])
		errs[i] = o.fail("sweep", err)
		for _, l := range r.Lapsed {
			lease := Lease{Nonce: l.Nonce}
			if l.Record != "" {
				if lease, err = parseLease(l.Nonce, l.Record); err != nil {
					errs[i] = o.broken("sweep", "", "", err)
					continue
				}
			}
			out[i] = append(out[i], lease)
		}
	}
	return out, errs
}

// Tries reads how many tries are spent on each row that a claim still holds.
func (o *Redis) Tries(ctx context.Context, run *Run, l Lease) (map[int64]int, error) {
	fields := make([]string, len(l.Ordinals))
	for i, n := range l.Ordinals {
		fields[i] = strconv.FormatInt(n, 10)
	}
	var vals []any
	err := o.scripts.Retry(ctx, func() (err error) {
		vals, err = o.rdb.HMGet(ctx, run.Keys.Rows(), fields...).Result()
		return err
	})
	if err != nil {
		return nil, o.fail("read rows", err)
	}
	out := map[int64]int{}
	for i, v := range vals {
		s, ok := v.(string)
		if !ok {
			continue
		}
		r, err := parseRecord(s)
		if err != nil {
			return nil, o.broken("read rows", run.WorkflowID, run.ID, err)
		}
		if r.nonce == l.Nonce {
			out[l.Ordinals[i]] = r.tries
		}
	}
	return out, nil
}

// Disclaim removes a claim whose run is gone.
func (o *Redis) Disclaim(ctx context.Context, shard int, nonce string) error {
	sh := o.space.Shard(shard)
	err := o.scripts.Retry(ctx, func() error {
		_, err := o.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.ZRem(ctx, sh.Claims(), nonce)
			p.HDel(ctx, sh.Leases(), nonce, nonce+":n")
			return nil
		})
		return err
	})
	return o.fail("sweep", err)
}
