package outbox

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel"
)

// Glance is as much of a run as tells whether there is news of it.
type Glance struct {
	Status umbel.Status // empty: the run is gone
	Head   string       // of its workflow's history
}

// Glance looks at many runs in one round trip.
func (o *Redis) Glance(ctx context.Context, runs []*Run) ([]Glance, error) {
	status, head := make([]*redis.StringCmd, len(runs)), make([]*redis.StringCmd, len(runs))
	err := o.scripts.Retry(ctx, func() error {
		_, err := o.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, r := range runs {
				status[i] = p.HGet(ctx, r.Keys.Record(), "status")
				head[i] = p.HGet(ctx, r.Shard.Workflow(r.Namespace, string(r.WorkflowID)).Record, "head")
			}
			return nil
		})
		if errors.Is(err, redis.Nil) { // a run that is gone
			return nil
		}
		return err
	})
	if err != nil {
		return nil, o.fail("read runs", err)
	}
	out := make([]Glance, len(runs))
	for i := range runs {
		out[i] = Glance{Status: umbel.Status(status[i].Val()), Head: head[i].Val()}
	}
	return out, nil
}
