package history_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/umbelhq/umbel/history"
	"github.com/umbelhq/umbel/history/historytest"
	"github.com/umbelhq/umbel/internal/testredis"
	"github.com/umbelhq/umbel/outbox"
	"github.com/umbelhq/umbel/outbox/outboxtest"
)

// place is a Redis on which histories are opened, each with a prefix of its own.
type place struct {
	*testredis.Redis

	shards int
	opened atomic.Int64
}

// places are the kinds of Redis and the numbers of shards that the suites run on.
func places(t *testing.T, f func(t *testing.T, p *place)) {
	t.Helper()
	testredis.Each(t, func(t *testing.T, r *testredis.Redis) {
		t.Parallel()
		for _, shards := range outboxtest.Shards(r.Kind == testredis.KindMini) {
			t.Run(fmt.Sprintf("%d", shards), func(t *testing.T) {
				t.Parallel()
				f(t, &place{Redis: r, shards: shards})
			})
		}
	})
}

func TestMain(m *testing.M) { os.Exit(outboxtest.Main(m)) }

// store opens an empty history.
func (p *place) store(t *testing.T) (*history.Redis, outboxtest.Keyspace) {
	t.Helper()
	k := outboxtest.Keyspace{Redis: p.Client, Prefix: fmt.Sprintf("%s-%d", p.Prefix, p.opened.Add(1))}
	rows, err := outbox.NewRedis(t.Context(), p.Client, outbox.Options{Prefix: k.Prefix, Shards: p.shards})
	if err != nil {
		t.Fatal(err)
	}
	return history.NewRedis(rows), k
}

func (p *place) open(t *testing.T) historytest.Backend {
	t.Helper()
	store, k := p.store(t)
	moved := false // a head that was set stands behind a gap
	return historytest.Backend{
		Store: store,
		Now:   func(t *testing.T) time.Time { t.Helper(); return now(t, store) },
		Dump:  func(t *testing.T) string { t.Helper(); return k.Dump(t) },
		SetHead: func(t *testing.T, wf history.Workflow, n int64) {
			t.Helper()
			moved = true
			key := store.Rows().Shard("default", wf.ID).Workflow("default", string(wf.ID)).Record
			if err := p.Client.HSet(t.Context(), key, "head", n).Err(); err != nil {
				t.Fatal(err)
			}
		},
		Invariant: func(t *testing.T) error {
			t.Helper()
			if err := checkHistory(t, k); err != nil && !moved {
				return err
			}
			return outboxtest.CheckRedis(t, k.Redis, k.Prefix)
		},
		Close: func() {
			if err := k.Clear(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		},
	}
}

func now(t *testing.T, h *history.Redis) time.Time {
	t.Helper()
	now, err := h.Rows().Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return now
}

func TestRedis(t *testing.T) {
	t.Parallel()
	places(t, func(t *testing.T, p *place) { historytest.Run(t, p.open) })
}

func TestRedisProperty(t *testing.T) {
	t.Parallel()
	places(t, func(t *testing.T, p *place) { historytest.Property(t, p.open) })
}
