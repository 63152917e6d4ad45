package worker

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel"
)

// causes registers a handler that waits for the end of its context, or for d, and passes on the cause.
func causes(b *bundle, d time.Duration) chan error {
	ends := make(chan error, 10_000)
	HandleFunc(b.Worker, "wait", func(ctx context.Context, in umbel.Payload) (umbel.Payload, error) {
		select {
		case <-ctx.Done():
			ends <- context.Cause(ctx)
			return umbel.Payload{}, ctx.Err()
		case <-time.After(d):
			ends <- nil
			return in, nil
		}
	})
	return ends
}

func TestCase7LongActivityRunsOnce(t *testing.T) {
	for _, lease := range []time.Duration{umbel.MinLease, umbel.DefaultLease} {
		synctest.Test(t, func(t *testing.T) {
			b := setup(t, Config{Concurrency: 5000})
			b.engine.lease, b.engine.latency = lease, 10*time.Millisecond
			ends := causes(b, 10*lease)
			b.engine.add(2500, row("wait")) // three renewal calls
			b.start()
			time.Sleep(11*lease + time.Second)
			b.stopped()
			if done, _, _ := b.engine.state(); done != 2500 || len(ends) != 2500 || b.engine.lapsed != 0 {
				t.Errorf("lease %v: resolved %d, ran %d, lapsed %d", lease, done, len(ends), b.engine.lapsed)
			}
			for _, r := range b.engine.renews {
				if len(r.Tokens) > renewBatch {
					t.Fatalf("renewed %d tokens at once", len(r.Tokens))
				}
			}
		})
	}
}

// A row whose lease is short is renewed in time, though the next renewal was far away when it came.
func TestShortLeaseAfterIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, Config{})
		b.engine.lease = umbel.MinLease
		causes(b, 5*time.Second)
		b.start()
		for range 7 {
			time.Sleep(1370 * time.Millisecond)
			b.engine.add(1, row("wait"))
		}
		time.Sleep(10 * time.Second)
		b.stopped()
		if b.engine.lapsed != 0 {
			t.Errorf("%d leases lapsed", b.engine.lapsed)
		}
	})
}

func TestCancelIsSeenWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, Config{})
		b.engine.latency = 50 * time.Millisecond
		ends := causes(b, time.Hour)
		b.engine.add(10, row("wait"))
		b.start()
		time.Sleep(7*time.Second + 123*time.Millisecond)
		b.engine.cancel()
		time.Sleep(time.Second)
		if len(ends) != 10 {
			t.Fatalf("%d handlers have ended", len(ends))
		}
		if err := <-ends; !errors.Is(err, umbel.ErrCancelled) {
			t.Errorf("cause: %v", err)
		}
		b.stopped()
		if s := b.Stats(); s.Cancelled != 10 || s.Reports != 0 || s.Lost != 0 {
			t.Errorf("stats: %+v", s)
		}
	})
}

// The server says that the row is another's: the handler ends, and its failure is not reported.
func TestCase10LeaseLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, Config{})
		ends := causes(b, 5*time.Second)
		HandleFunc(b.Worker, "succeeds", func(ctx context.Context, in umbel.Payload) (umbel.Payload, error) {
			<-ctx.Done()
			return in, nil
		})
		b.engine.add(1, row("wait"))
		b.engine.add(1, row("succeeds"))
		b.start()
		synctest.Wait()
		b.engine.set(func() {
			for _, c := range b.engine.claims {
				c.gone = true // as if it had lapsed, with nobody else to take the row
			}
		})
		time.Sleep(time.Second)
		if err := <-ends; !errors.Is(err, umbel.ErrLeaseLost) {
			t.Errorf("cause: %v", err)
		}
		b.stopped()
		if s := b.Stats(); s.Lost != 2 || s.Completed != 1 || s.Failed != 0 || s.Released != 0 {
			t.Errorf("stats: %+v", s)
		}
	})
}

// No renewal is answered for as long as MaxSilence allows: the handlers end then, no sooner and no later. If the rows turn out
// to be still ours, they go back uncharged.
func TestSilenceLosesTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, Config{MaxSilence: umbel.DefaultLease})
		ends := causes(b, time.Hour)
		b.engine.add(3, row("wait"))
		b.start()
		time.Sleep(10 * time.Second) // renewed after 9.9
		b.engine.set(func() {
			b.engine.lease = time.Hour // the server is away, and nothing lapses there
			b.engine.onRenew = func(ctx context.Context, _ umbel.RenewRequest) error {
				<-ctx.Done() // hangs
				return &umbel.Error{Code: umbel.CodeUnavailable, Err: ctx.Err()}
			}
			b.engine.onReport = func(context.Context, umbel.ReportRequest) error { return umbel.ErrUnavailable }
			for _, c := range b.engine.claims {
				c.until = time.Now().Add(time.Hour)
			}
		})
		time.Sleep(umbel.DefaultLease - 200*time.Millisecond)
		if len(ends) != 0 {
			t.Errorf("%d handlers ended too soon: %v", len(ends), <-ends)
		}
		time.Sleep(200 * time.Millisecond)
		if len(ends) != 3 {
			t.Fatalf("%d handlers have ended", len(ends))
		}
		if err := <-ends; !errors.Is(err, umbel.ErrLeaseLost) {
			t.Errorf("cause: %v", err)
		}
		b.engine.set(func() { b.engine.onRenew, b.engine.onReport = nil, nil })
		time.Sleep(time.Minute)
		if s := b.Stats(); s.Lost != 3 || s.Released != 3 {
			t.Errorf("stats: %+v", s)
		}
		if n := len(b.logs.at(slogWarn)); n > 3 {
			t.Errorf("%d warnings: %v", n, b.logs.at(slogWarn))
		}
		b.cancel()
		if err := b.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		b.stopped()
		for _, r := range b.engine.due {
			if r.Attempt != 1 {
				t.Errorf("charged: attempt %d", r.Attempt)
			}
		}
	})
}

// Handlers outlive an outage of two leases, and nothing runs twice.
func TestCase58ServerAwayForTwoLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, Config{})
		ends := causes(b, 2*time.Minute)
		quick := 0
		HandleFunc(b.Worker, "quick", func(_ context.Context, in umbel.Payload) (umbel.Payload, error) {
			quick++
			time.Sleep(20 * time.Second)
			return in, nil
		})
		b.engine.lease = time.Hour // nothing lapses on the server's side
		b.engine.add(3, umbel.ClaimedRow{Row: umbel.Row{Type: "wait"}})
		b.engine.add(1, row("quick"))
		for i := range b.engine.due {
			b.engine.due[i].Lease = umbel.DefaultLease
		}
		var away atomic.Bool
		down := func() error {
			if away.Load() {
				return umbel.ErrUnavailable
			}
			return nil
		}
		b.engine.onPoll = func(context.Context, umbel.PollRequest) error { return down() }
		b.engine.onRenew = func(context.Context, umbel.RenewRequest) error { return down() }
		b.engine.onReport = func(context.Context, umbel.ReportRequest) error { return down() }
		b.start()
		time.Sleep(10 * time.Second)
		away.Store(true)
		time.Sleep(2 * umbel.DefaultLease)
		away.Store(false)
		time.Sleep(2 * time.Minute)
		b.stopped()
		if done, _, _ := b.engine.state(); done != 4 || len(ends) != 3 || quick != 1 {
			t.Errorf("resolved %d, ran %d and %d times", done, len(ends), quick)
		}
		if w := strings.Join(b.logs.at(slogWarn), "\n"); strings.Count(w, "cannot renew") != 1 || strings.Count(w, "cannot report") != 1 {
			t.Errorf("warnings:\n%s", w)
		}
	})
}

// A call that hangs costs the rows of no other call their lease, nor its own if the next one is answered.
func TestSlowRenewalBlocksNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, Config{Concurrency: 3000})
		b.engine.lease = 3 * time.Second
		ends := causes(b, 30*time.Second)
		n := 0
		b.engine.onRenew = func(ctx context.Context, _ umbel.RenewRequest) error {
			b.engine.mu.Lock()
			n++
			hang := n%6 == 1 // one of three calls, every other round
			b.engine.mu.Unlock()
			if hang {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		b.engine.add(2500, row("wait"))
		b.start()
		time.Sleep(40 * time.Second)
		b.stopped()
		if len(ends) != 2500 || b.engine.lapsed != 0 {
			t.Errorf("ran %d, lapsed %d", len(ends), b.engine.lapsed)
		}
	})
}
