package outbox

import (
	"context"

	"github.com/umbelhq/umbel/internal/lua"
)

// Hold names rows of a claim that somebody says they hold. Renew sets States, a letter for each: h held, l lost,
// c cancelled. Tags are the caller's.
type Hold struct {
	Run      *Run
	Nonce    string
	Ordinals []int64
	Tags     []int
	States   []byte
}

// Renew starts the leases of claims of one shard anew. A lease is as long as it was when the claim was made.
func (o *Redis) Renew(ctx context.Context, shard int, holds []*Hold) error {
	sh := o.space.Shard(shard)
	p := lua.Renew{Claims: sh.Claims(), Leases: sh.Leases()}
	for _, h := range holds {
		k := h.Run.Keys
		p.Holds = append(p.Holds, lua.Hold{
			Run: k.Record(), Rows: k.Rows(), Cancelled: k.Cancelled(), Nonce: h.Nonce, Ordinals: h.Ordinals,
		})
	}
	states, err := o.scripts.Renew(ctx, p)
	if err != nil {
		return o.fail("renew", err)
	}
	for i, h := range holds {
		h.States = []byte(states[i])
	}
	return nil
}
