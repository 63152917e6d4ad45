package outbox

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel/internal/keys"
)

// ReadyOf reads when to look at given routes of a shard; those on which nothing waits are left out. It is for a
// shard with more routes than [MaxReady].
func (o *Redis) ReadyOf(ctx context.Context, shard int, routes []keys.Route) ([]Ready, error) {
	key := o.space.Shard(shard).Ready()
	cmds := make([]*redis.FloatSliceCmd, 0, len(routes)/ReadyPage+1)
	err := o.scripts.Retry(ctx, func() error {
		cmds = cmds[:0]
		_, err := o.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for at := 0; at < len(routes); at += ReadyPage {
				names := make([]string, 0, ReadyPage)
				for _, r := range routes[at:min(at+ReadyPage, len(routes))] {
					names = append(names, r.String())
				}
				cmds = append(cmds, p.ZMScore(ctx, key, names...))
			}
			return nil
		})
		return err
	})
	if err != nil {
		return nil, o.fail("read ready routes", err)
	}
	var out []Ready
	for i, c := range cmds {
		for j, score := range c.Val() {
			if score > 0 { // an absent member reads as 0
				out = append(out, Ready{Route: routes[i*ReadyPage+j], At: millis(score)})
			}
		}
	}
	return out, nil
}
