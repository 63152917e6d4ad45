package history

import (
	"context"
	"slices"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/outbox"
)

// describe adds what is known of the rows of a page: type and key, and the inputs if they are asked for. bytes is
// what the page takes without inputs; it is cut where they would take it above its limit.
func (h *Redis) describe(ctx context.Context, run *outbox.Run, p Page, inputs bool, bytes int) (Page, error) {
	if run.Served && len(run.Routes) == 1 && !run.Keyed && !inputs {
		for i := range p.Results {
			p.Results[i].Type = run.Routes[0].Type
		}
		return p, nil
	}
	const step = 250 // each with up to 16 KB
	done := 0
	for part := range slices.Chunk(p.Results, step) {
		ordinals := make([]int64, len(part))
		for i, r := range part {
			ordinals[i] = r.Ordinal
		}
		items, err := h.outbox.Items(ctx, run, ordinals)
		if err != nil {
			return p, err
		}
		for i, it := range items {
			r := &part[i]
			r.Type, r.Key = it.On.Type, it.Key
			if inputs {
				if r.Input, err = h.whole(ctx, run, r.Ordinal, it); err != nil {
					return p, err
				}
				if bytes += len(r.Input.Data); bytes > umbel.MaxPageBytes && done > 0 {
					p.Results, p.Next, p.End = p.Results[:done], p.Results[done-1].Cursor, false
					return p, nil
				}
			}
			done++
		}
	}
	return p, nil
}

// whole is the input of an item, large or not.
func (h *Redis) whole(ctx context.Context, run *outbox.Run, ordinal int64, it outbox.Item) (umbel.Payload, error) {
	if !it.Large {
		return it.Input, nil
	}
	var err error
	it.Input.Data, err = h.outbox.Large(ctx, run, ordinal)
	return it.Input, err
}
