package outboxtest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel/outbox"
	"github.com/umbelhq/umbel/outbox/outboxtest"
)

func openModel(*testing.T) outboxtest.Backend {
	clock := outboxtest.NewClock()
	m := outboxtest.NewModel(clock.Now)
	return backendOf(m, m, clock)
}

func backendOf(store outbox.Store, m *outboxtest.Model, clock *outboxtest.Clock) outboxtest.Backend {
	return outboxtest.Backend{
		Store:           store,
		Now:             func(*testing.T) time.Time { return clock.Now() },
		WaitUntil:       func(_ *testing.T, at time.Time) { clock.WaitUntil(at) },
		Virtual:         true,
		Dump:            func(*testing.T) string { return m.Dump() },
		ForgetClaimedAt: func(_ *testing.T, key outbox.Key) { m.ForgetClaimedAt(key) },
	}
}

func TestModel(t *testing.T) {
	t.Parallel()
	outboxtest.Run(t, openModel)
}

func TestModelProperty(t *testing.T) {
	t.Parallel()
	outboxtest.Property(t, openModel)
}

// The suite runs in a bubble too, for stores whose clock is that of the bubble.
func TestModelInABubble(t *testing.T) {
	t.Parallel()
	open := func(*testing.T) outboxtest.Backend {
		m := outboxtest.NewModel(time.Now)
		return outboxtest.Backend{
			Store:     m,
			Now:       func(*testing.T) time.Time { return time.Now() },
			WaitUntil: func(_ *testing.T, at time.Time) { time.Sleep(time.Until(at)) },
			Virtual:   true,
			Dump:      func(*testing.T) string { return m.Dump() },
		}
	}
	outboxtest.RunIn(t, synctest.Test, open)
	t.Run("Property", func(t *testing.T) { outboxtest.PropertyIn(t, synctest.Test, open) })
}

// It runs on a clock that nobody holds, over several shards.
func TestModelOnARealClock(t *testing.T) {
	t.Parallel()
	open := func(*testing.T) outboxtest.Backend {
		m := outboxtest.NewModel(time.Now)
		return outboxtest.Backend{
			Store:     &sharded{Model: m},
			Now:       func(*testing.T) time.Time { return time.Now() },
			WaitUntil: func(_ *testing.T, at time.Time) { time.Sleep(time.Until(at)) },
			Dump:      func(*testing.T) string { return m.Dump() },
			Shard:     shardOf,
		}
	}
	outboxtest.Run(t, open)
	t.Run("Property", func(t *testing.T) { outboxtest.Property(t, open) })
}
