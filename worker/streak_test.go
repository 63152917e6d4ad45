package worker

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel"
)

// moments notes when an engine is called, and makes the calls of a streak fail.
type moments struct {
	at    []time.Time
	fails atomic.Int64 // how many calls fail from now on
	err   error
}

// hit is a call. The fake makes them one at a time.
func (m *moments) hit() error {
	m.at = append(m.at, time.Now())
	if m.fails.Add(-1) >= 0 {
		return m.err
	}
	return nil
}

// between is the time from the i-th call to the next.
func (m *moments) between(i int) time.Duration { return m.at[i+1].Sub(m.at[i]) }

// breakCalls makes calls of one kind go through m.
func breakCalls(b *bundle, op string, m *moments) {
	b.engine.set(func() {
		switch op {
		case "poll":
			b.engine.onPoll = func(context.Context, umbel.PollRequest) error { return m.hit() }
		case "report":
			b.engine.onReport = func(context.Context, umbel.ReportRequest) error { return m.hit() }
		case "renew":
			b.engine.onRenew = func(context.Context, umbel.RenewRequest) error { return m.hit() }
		}
	})
}

// One server of several is stopped: the next try reaches another. It is made at once, and nobody is told.
func TestOneFailureIsMendedAtOnce(t *testing.T) {
	for _, op := range []string{"poll", "report", "renew"} {
		synctest.Test(t, func(t *testing.T) {
			b := setup(t, Config{Concurrency: 1})
			ends := causes(b, 2500*time.Millisecond)
			b.engine.add(3, row("wait"))
			m := &moments{err: &umbel.Error{Code: umbel.CodeUnavailable, Reason: "the server is closing"}}
			breakCalls(b, op, m)
			m.fails.Store(1)
			b.start()
			time.Sleep(5 * time.Second)
			m.fails.Store(1) // the other server, later
			time.Sleep(5 * time.Second)
			b.stopped()
			if d := m.between(0); d != 0 {
				t.Errorf("%s: the second try came after %v", op, d)
			}
			if done, _, _ := b.engine.state(); done != 3 || len(ends) != 3 || b.engine.lapsed != 0 {
				t.Errorf("%s: resolved %d, ran %d, lapsed %d", op, done, len(ends), b.engine.lapsed)
			}
			if s := b.Stats(); s.PollErrors+s.ReportErrors+s.RenewErrors != 2 {
				t.Errorf("%s: %+v", op, s)
			}
			if w := b.logs.at(slogWarn); w != nil {
				t.Errorf("%s: warned of %v", op, w)
			}
		})
	}
}

// All servers are away: from the second failure on tries are spread, and the log says so once.
func TestMoreFailuresBackOff(t *testing.T) {
	for _, op := range []string{"poll", "report", "renew"} {
		synctest.Test(t, func(t *testing.T) {
			b := setup(t, Config{Concurrency: 1})
			ends := causes(b, 10*time.Second)
			b.engine.add(1, row("wait"))
			m := &moments{err: umbel.ErrUnavailable}
			breakCalls(b, op, m)
			m.fails.Store(4)
			b.start()
			time.Sleep(time.Minute)
			m.fails.Store(1) // a streak of its own
			b.engine.add(1, row("wait"))
			time.Sleep(time.Minute)
			b.stopped()
			if m.between(0) != 0 || m.between(1) < 50*time.Millisecond {
				t.Errorf("%s: tries came after %v and %v", op, m.between(0), m.between(1))
			}
			if op != "renew" && (m.between(2) < 100*time.Millisecond || m.between(3) < 200*time.Millisecond) {
				t.Errorf("%s: later tries came after %v and %v", op, m.between(2), m.between(3))
			}
			if done, _, _ := b.engine.state(); done != 2 || len(ends) != 2 {
				t.Errorf("%s: resolved %d, ran %d", op, done, len(ends))
			}
			if w := b.logs.at(slogWarn); len(w) != 1 {
				t.Errorf("%s: warnings: %v", op, w)
			}
		})
	}
}

// What another server would not mend is not tried again at once.
func TestOtherFailuresWait(t *testing.T) {
	for _, op := range []string{"poll", "report", "renew"} {
		synctest.Test(t, func(t *testing.T) {
			b := setup(t, Config{Concurrency: 1})
			causes(b, 5*time.Second)
			b.engine.add(1, row("wait"))
			m := &moments{err: umbel.ErrOverloaded}
			breakCalls(b, op, m)
			m.fails.Store(1)
			b.start()
			time.Sleep(time.Minute)
			b.stopped()
			if d := m.between(0); d < 50*time.Millisecond {
				t.Errorf("%s: tried again after %v", op, d)
			}
			if w := b.logs.at(slogWarn); len(w) != 1 {
				t.Errorf("%s: warnings: %v", op, w)
			}
		})
	}
}

// A renewal that hung until its time was over is not repeated: the next round is due.
func TestHungRenewalIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, Config{})
		causes(b, 25*time.Second)
		b.engine.add(1, row("wait"))
		var hung atomic.Int64
		b.engine.onRenew = func(ctx context.Context, _ umbel.RenewRequest) error {
			hung.Add(1)
			<-ctx.Done()
			return &umbel.Error{Code: umbel.CodeUnavailable, Err: ctx.Err()}
		}
		b.start()
		time.Sleep(renewEvery + umbel.DefaultLease/3 + time.Millisecond)
		if n := hung.Load(); n != 1 {
			t.Errorf("%d calls", n)
		}
		b.engine.set(func() { b.engine.onRenew = nil })
		time.Sleep(time.Minute)
		b.stopped()
	})
}

func TestStreak(t *testing.T) {
	s := newStreak()
	other := errors.New("other")
	for range 2 { // over makes it new
		if wait, warn := s.failed(umbel.ErrUnavailable); wait != 0 || warn {
			t.Errorf("first: %v, %v", wait, warn)
		}
		if s.over() {
			t.Error("there was no warning")
		}
		if wait, warn := s.failed(other); wait == 0 || !warn {
			t.Errorf("first, of another kind: %v, %v", wait, warn)
		}
		for range 20 {
			if wait, warn := s.failed(umbel.ErrUnavailable); wait < 50*time.Millisecond || wait > maxBackOff*3/2 || warn {
				t.Errorf("later: %v, %v", wait, warn)
			}
		}
		if !s.over() {
			t.Error("there was a warning")
		}
	}
}
