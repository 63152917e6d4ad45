package outbox

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/keys"
)

// Item is what was staged for a row.
type Item struct {
	Route int        // its number in the run
	On    keys.Route // the same
	Key   string
	Input umbel.Payload
}

// Items reads what was staged for rows of a run, by ordinal, in the order asked for. Inputs that have a field
// of their own are read only if large is set.
func (o *Redis) Items(ctx context.Context, run *Run, ordinals []int64, large bool) ([]Item, error) {
	rd := run.reader()
	var numbers []int64
	for _, n := range ordinals {
		numbers = append(numbers, n/run.ChunkRows)
	}
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	for part := range slices.Chunk(numbers, maxClaimChunks) {
		fields := make([]string, len(part))
		for i, n := range part {
			fields[i] = strconv.FormatInt(n, 10)
		}
		vals, err := o.fields(ctx, run, fields)
		if err != nil {
			return nil, err
		}
		for i, n := range part {
			rd.chunks[n] = vals[i]
		}
	}
	out := make([]Item, len(ordinals))
	for i, ordinal := range ordinals {
		in, err := rd.input(ordinal)
		if err != nil {
			return nil, o.broken("read inputs", run.WorkflowID, run.ID, fmt.Errorf("ordinal %d: %w", ordinal, err))
		}
		if in.large && large {
			vals, err := o.fields(ctx, run, []string{"b" + strconv.FormatInt(ordinal, 10)})
			if err != nil {
				return nil, err
			}
			in.payload.Data = []byte(vals[0])
		}
		if in.route >= len(run.Routes) { // the run has grown since it was read
			if run, err = o.Reload(ctx, run); err != nil {
				return nil, err
			}
		}
		if in.route >= len(run.Routes) {
			return nil, o.broken("read inputs", run.WorkflowID, run.ID, fmt.Errorf("ordinal %d is on route %d of %d", ordinal, in.route, len(run.Routes)))
		}
		out[i] = Item{Route: in.route, On: run.Routes[in.route], Key: in.key, Input: in.payload}
	}
	return out, nil
}

func (o *Redis) fields(ctx context.Context, run *Run, fields []string) ([]string, error) {
	out := make([]string, len(fields))
	err := o.scripts.Retry(ctx, func() error {
		vals, err := o.rdb.HMGet(ctx, run.Keys.Inputs(), fields...).Result()
		for i, v := range vals {
			out[i], _ = v.(string)
		}
		return err
	})
	return out, o.fail("read inputs", err)
}
