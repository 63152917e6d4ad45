package outbox_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/testredis"
	"github.com/umbelhq/umbel/outbox"
	"github.com/umbelhq/umbel/outbox/outboxtest"
)

// place is a Redis on which stores are opened, each with a prefix of its own.
type place struct {
	*testredis.Redis

	clock  *outboxtest.Clock // nil: Redis's own
	shards int
	opened atomic.Int64
}

// on returns a place on r. A miniredis gets a clock that stands still.
func on(t *testing.T, r *testredis.Redis, shards int) *place {
	t.Helper()
	p := &place{Redis: r, shards: shards}
	if r.Kind == testredis.KindMini {
		p.clock = outboxtest.NewClock()
		r.Engine(t).SetTime(p.clock.Now())
	}
	return p
}

// open opens an empty store.
func (p *place) open(t *testing.T) outboxtest.Backend {
	t.Helper()
	prefix := fmt.Sprintf("%s-%d", p.Prefix, p.opened.Add(1))
	store, err := outbox.NewRedis(t.Context(), p.Client, outbox.Options{Prefix: prefix, Shards: p.shards})
	if err != nil {
		t.Fatal(err)
	}
	k := outboxtest.Keyspace{Redis: p.Client, Prefix: prefix}
	b := outboxtest.Backend{
		Store: store,
		Now: func(t *testing.T) time.Time {
			t.Helper()
			now, err := store.Now(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return now
		},
		Dump:      func(t *testing.T) string { t.Helper(); return k.Dump(t) },
		Shard:     func(namespace string, id umbel.WorkflowID) int { return store.Shard(namespace, id).Index },
		Invariant: func(t *testing.T) error { t.Helper(); return outboxtest.CheckRedis(t, p.Client, prefix) },
		ForgetClaimedAt: func(t *testing.T, key outbox.Key) {
			t.Helper()
			forgetClaim(t, p, store, key)
		},
		Close: func() {
			if err := k.Clear(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		},
	}
	if p.clock != nil {
		b.Virtual = true
		b.WaitUntil = func(t *testing.T, at time.Time) {
			t.Helper()
			p.clock.WaitUntil(at)
			p.Engine(t).SetTime(p.clock.Now())
		}
		return b
	}
	b.WaitUntil = func(t *testing.T, at time.Time) {
		t.Helper()
		for now := b.Now(t); now.Before(at); now = b.Now(t) {
			time.Sleep(at.Sub(now))
		}
	}
	return b
}

// forgetClaim makes a claimed row one whose claim nobody knows.
func forgetClaim(t *testing.T, p *place, store *outbox.Redis, key outbox.Key) {
	t.Helper()
	ctx := t.Context()
	sh := store.Shard(key.Namespace, key.WorkflowID)
	id, err := store.Current(ctx, key.Namespace, key.WorkflowID)
	if err != nil {
		t.Fatal(err)
	}
	rows, field := sh.Run(string(id)).Rows(), fmt.Sprint(key.Ordinal)
	rec, err := p.Client.HGet(ctx, rows, field).Result()
	if err != nil {
		t.Fatal(err)
	}
	nonce := rec[5:31]
	p.Client.HSet(ctx, rows, field, rec[:5]+strings.Repeat("-", 26)+rec[31:])
	if p.Client.HIncrBy(ctx, sh.Leases(), nonce+":n", -1).Val() == 0 {
		p.Client.HDel(ctx, sh.Leases(), nonce, nonce+":n")
		p.Client.ZRem(ctx, sh.Claims(), nonce)
	}
}

// places are the kinds of Redis and the numbers of shards that the suites run on.
func places(t *testing.T, f func(t *testing.T, p *place)) {
	t.Helper()
	testredis.Each(t, func(t *testing.T, r *testredis.Redis) {
		t.Parallel()
		for _, shards := range outboxtest.Shards(r.Kind == testredis.KindMini) {
			t.Run(fmt.Sprintf("%d", shards), func(t *testing.T) {
				t.Parallel()
				f(t, on(t, r, shards))
			})
		}
	})
}

func TestMain(m *testing.M) { os.Exit(outboxtest.Main(m)) }

func TestRedis(t *testing.T) {
	t.Parallel()
	places(t, func(t *testing.T, p *place) { outboxtest.Run(t, p.open) })
}

func TestRedisProperty(t *testing.T) {
	t.Parallel()
	places(t, func(t *testing.T, p *place) { outboxtest.Property(t, p.open) })
}
