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
	Large bool // Input is without its bytes, which [Redis.Large] reads
}

// Items reads what was staged for rows of a run, by ordinal, in the order asked for: up to 16 KB a row. The bytes
// of larger inputs are read one by one, by [Redis.Large].
func (o *Redis) Items(ctx context.Context, run *Run, ordinals []int64) ([]Item, error) {
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
		if in.route >= len(run.Routes) { // the run has grown since it was read
			if run, err = o.Reload(ctx, run); err != nil {
				return nil, err
			}
		}
		if in.route >= len(run.Routes) {
			return nil, o.broken("read inputs", run.WorkflowID, run.ID, fmt.Errorf("ordinal %d is on route %d of %d", ordinal, in.route, len(run.Routes)))
		}
		out[i] = Item{Route: in.route, On: run.Routes[in.route], Key: in.key, Input: in.payload, Large: in.large}
	}
	return out, nil
}

// Large reads the bytes of an input that has a field of its own.
func (o *Redis) Large(ctx context.Context, run *Run, ordinal int64) ([]byte, error) {
	vals, err := o.fields(ctx, run, []string{"b" + strconv.FormatInt(ordinal, 10)})
	if err != nil {
		return nil, err
	}
	if vals[0] == "" {
		return nil, o.broken("read inputs", run.WorkflowID, run.ID, fmt.Errorf("ordinal %d: %w", ordinal, errChunk))
	}
	return []byte(vals[0]), nil
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
