package historytest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel/history"
	"github.com/umbelhq/umbel/history/historytest"
	"github.com/umbelhq/umbel/outbox/outboxtest"
)

func openModel(*testing.T) historytest.Backend {
	clock := outboxtest.NewClock()
	m := historytest.NewModel(clock.Now)
	return backendOf(m, m, clock)
}

func backendOf(store history.Store, m *historytest.Model, clock *outboxtest.Clock) historytest.Backend {
	return historytest.Backend{
		Store:   store,
		Now:     func(*testing.T) time.Time { return clock.Now() },
		Dump:    func(*testing.T) string { return m.Dump() },
		SetHead: func(_ *testing.T, wf history.Workflow, n int64) { m.SetHead(wf, n) },
	}
}

func TestModel(t *testing.T) {
	t.Parallel()
	historytest.Run(t, openModel)
}

func TestModelProperty(t *testing.T) {
	t.Parallel()
	historytest.Property(t, openModel)
}

func TestModelInABubble(t *testing.T) {
	t.Parallel()
	open := func(*testing.T) historytest.Backend {
		return historytest.Backend{Store: historytest.NewModel(time.Now), Now: func(*testing.T) time.Time { return time.Now() }}
	}
	historytest.RunIn(t, synctest.Test, open)
	t.Run("Property", func(t *testing.T) { historytest.PropertyIn(t, synctest.Test, open) })
}

// The rows of a history are an outbox like any other.
func TestModelOutbox(t *testing.T) {
	t.Parallel()
	outboxtest.Run(t, func(*testing.T) outboxtest.Backend {
		clock := outboxtest.NewClock()
		return outboxtest.Backend{
			Store:     historytest.NewModel(clock.Now).Outbox(),
			Now:       func(*testing.T) time.Time { return clock.Now() },
			WaitUntil: func(_ *testing.T, at time.Time) { clock.WaitUntil(at) },
			Virtual:   true,
		}
	})
}
