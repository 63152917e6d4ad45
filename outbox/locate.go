package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// spans are the spans of fresh rows of a run's route, by ordinal.
type spans map[int][]member

// find returns the span that an ordinal is in.
func (s spans) find(route int, ordinal int64) (member, bool) {
	i, ok := slices.BinarySearchFunc(s[route], ordinal, func(m member, o int64) int {
		switch {
		case m.last < o:
			return -1
		case m.first > o:
			return 1
		}
		return 0
	})
	if !ok {
		return member{}, false
	}
	return s[route][i], true
}

// locate finds where rows wait and since when they are held. known is what was read of the spans before: a fresh
// row's span may shrink, but is due when it was; where it is not found the route is read anew.
func (o *Redis) locate(ctx context.Context, run *Run, vs []view, known spans) error {
	var nonces []string
	var parked []*view
	anew := map[int]bool{}
	for i := range vs {
		v := &vs[i]
		switch {
		case v.status == Claimed:
			nonces = append(nonces, v.nonce)
		case v.status == Pending && !v.fresh:
			parked = append(parked, v)
		case v.status == Pending:
			m, ok := known.find(v.route, v.ordinal)
			if !ok && !anew[v.route] {
				anew[v.route] = true
				if err := o.readSpans(ctx, run, v.route, known); err != nil {
					return err
				}
				m, ok = known.find(v.route, v.ordinal)
			}
			if ok {
				v.span, v.visible = m.raw, m.visible()
			}
		}
	}
	if err := o.locateClaimed(ctx, run, vs, nonces); err != nil {
		return err
	}
	return o.locateParked(ctx, run, parked)
}

// locateClaimed sets when rows were claimed; a claim without a record has no such instant.
func (o *Redis) locateClaimed(ctx context.Context, run *Run, vs []view, nonces []string) error {
	slices.Sort(nonces)
	leases, err := o.Leases(ctx, run.Shard.Index, slices.Compact(nonces))
	if err != nil {
		return err
	}
	at := make(map[string]time.Time, len(leases))
	for _, l := range leases {
		at[l.Nonce] = l.ClaimedAt
	}
	for i := range vs {
		if vs[i].status == Claimed {
			vs[i].claimed = at[vs[i].nonce]
		}
	}
	return nil
}

// locateParked sets when rows that have a record are due.
func (o *Redis) locateParked(ctx context.Context, run *Run, parked []*view) error {
	if len(parked) == 0 {
		return nil
	}
	cmds := make([]*redis.FloatCmd, len(parked))
	err := o.scripts.Retry(ctx, func() error {
		_, err := o.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, v := range parked {
				cmds[i] = p.ZScore(ctx, run.Keys.Due(v.route), fmt.Sprintf("%08dr", v.ordinal))
			}
			return nil
		})
		if errors.Is(err, redis.Nil) { // one was claimed meanwhile
			return nil
		}
		return err
	})
	for i, v := range parked {
		if cmds[i].Err() == nil {
			v.visible = time.UnixMilli(int64(cmds[i].Val())).UTC()
		}
	}
	return o.fail("read row", err)
}

// readSpans reads the spans of a route, a page at a time.
func (o *Redis) readSpans(ctx context.Context, run *Run, route int, into spans) error {
	const page = 1000
	var all []member
	for at := int64(0); ; at += page {
		var zs []redis.Z
		err := o.scripts.Retry(ctx, func() (err error) {
			zs, err = o.rdb.ZRangeWithScores(ctx, run.Keys.Due(route), at, at+page-1).Result()
			return err
		})
		if err != nil {
			return o.fail("read due rows", err)
		}
		for _, z := range zs {
			s, _ := z.Member.(string)
			m, err := parseMember(s, z.Score)
			if err != nil {
				return o.broken("read due rows", run.WorkflowID, run.ID, err)
			}
			if m.fresh {
				all = append(all, m)
			}
		}
		if len(zs) < page {
			break
		}
	}
	slices.SortFunc(all, func(a, b member) int { return cmp.Compare(a.first, b.first) })
	into[route] = all
	return nil
}
