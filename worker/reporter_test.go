package worker

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel"
)

// The server applies reports but its replies are lost, or it is away: every outcome arrives, memory is bounded.
func TestReportsAreRepeatedUntilAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, Config{Concurrency: 10})
		HandleFunc(b.Worker, "echo", echo)
		var down atomic.Bool
		down.Store(true)
		b.engine.onReport = func(context.Context, umbel.ReportRequest) error {
			if down.Load() {
				return umbel.ErrUnavailable
			}
			return nil
		}
		b.engine.add(500, row("echo"))
		b.start()
		time.Sleep(10 * time.Minute)
		if s := b.Stats(); s.Held != heldPerSlot*10 || s.Queued != s.Held || s.Busy != 0 {
			t.Errorf("while the server is away: %+v", s)
		}
		if b.engine.lapsed != 0 {
			t.Errorf("%d rows lapsed while they waited for a report", b.engine.lapsed)
		}
		down.Store(false)
		time.Sleep(2 * maxBackOff)
		if ends, _, _ := b.engine.state(); ends != 500 {
			t.Errorf("resolved %d", ends)
		}
		b.stopped()
		if s := b.Stats(); s.Completed != 500 {
			t.Errorf("stats: %+v", s)
		}
		if w := b.logs.at(slogWarn); len(w) != 1 {
			t.Errorf("warnings: %v", w)
		}
	})
}

func TestCase16ReplyLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, Config{})
		b.Worker.engine = &forgetful{fake: b.engine}
		HandleFunc(b.Worker, "echo", echo)
		b.engine.add(50, row("echo"))
		b.start()
		time.Sleep(time.Minute)
		b.stopped()
		if ends, _, _ := b.engine.state(); ends != 50 {
			t.Errorf("resolved %d", ends)
		}
		if s := b.Stats(); s.Completed+s.Dropped != 50 || s.Dropped == 0 {
			t.Errorf("stats: %+v", s)
		}
	})
}

// forgetful applies reports, and loses every other reply.
type forgetful struct {
	*fake
	n int
}

func (f *forgetful) Report(ctx context.Context, r umbel.ReportRequest) (umbel.ReportReply, error) {
	reply, err := f.fake.Report(ctx, r)
	if f.n++; f.n%2 == 1 {
		return umbel.ReportReply{}, umbel.ErrUnavailable
	}
	return reply, err
}

// Reports are split at their limits; what is larger travels alone.
func TestReportLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, Config{Concurrency: 3000})
		HandleFunc(b.Worker, "echo", echo)
		HandleFunc(b.Worker, "big", func(context.Context, umbel.Payload) (umbel.Payload, error) {
			return umbel.Payload{Data: make([]byte, 1500<<10)}, nil
		})
		var down atomic.Bool
		down.Store(true)
		b.engine.onReport = func(_ context.Context, r umbel.ReportRequest) error {
			size := 0
			for _, it := range r.Items {
				size += len(it.Result.Data)
			}
			if len(r.Items) > umbel.MaxReportItems || len(r.Items) > 1 && size > umbel.MaxReportBytes {
				t.Errorf("a report of %d items and %d bytes", len(r.Items), size)
			}
			if down.Load() {
				return umbel.ErrUnavailable
			}
			return nil
		}
		b.engine.add(2500, row("echo"))
		b.engine.add(20, row("big"))
		b.start()
		time.Sleep(time.Minute)
		down.Store(false)
		time.Sleep(time.Minute)
		b.stopped()
		if ends, _, _ := b.engine.state(); ends != 2520 {
			t.Errorf("resolved %d", ends)
		}
	})
}

// With results of this size the bytes bound what waits, not the rows.
func TestWaitingBytesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, Config{Concurrency: 10})
		result := make([]byte, 2<<20)
		HandleFunc(b.Worker, "big", func(context.Context, umbel.Payload) (umbel.Payload, error) {
			return umbel.Payload{Data: result}, nil
		})
		b.engine.set(func() {
			b.engine.onReport = func(context.Context, umbel.ReportRequest) error { return umbel.ErrUnavailable }
		})
		b.engine.add(100, row("big"))
		b.start()
		time.Sleep(time.Minute)
		if s := b.Stats(); s.Queued > 40 || s.Queued < 32 {
			t.Errorf("stats: %+v", s)
		}
		b.engine.set(func() { b.engine.onReport = nil })
		time.Sleep(time.Minute)
		if ends, _, _ := b.engine.state(); ends != 100 {
			t.Errorf("resolved %d", ends)
		}
		b.stopped()
		if b.queuedBytes != 0 {
			t.Errorf("%d bytes are thought to wait", b.queuedBytes)
		}
	})
}

// A result that the server refuses is reported once more, as a failure that says why.
func TestRefusedResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, Config{})
		HandleFunc(b.Worker, "echo", echo)
		b.engine.verdict = func(it umbel.ReportItem) *umbel.Verdict {
			if it.Outcome == umbel.OutcomeCompleted {
				return &umbel.Verdict{Code: umbel.Refused, Err: umbel.Limit("result", 10, "payload bytes", 5)}
			}
			return nil
		}
		b.engine.add(1, row("echo"))
		b.start()
		time.Sleep(time.Second)
		f := b.engine.end(0).Failure
		if f == nil || f.Type != umbel.FailureInvalidResult || !f.NonRetryable || !strings.Contains(f.Message, "limit of 5 payload bytes") {
			t.Errorf("failure: %+v", f)
		}
		b.engine.set(func() {
			b.engine.verdict = func(umbel.ReportItem) *umbel.Verdict { return &umbel.Verdict{Code: umbel.Refused} }
		})
		b.engine.add(1, row("echo"))
		time.Sleep(time.Second)
		b.stopped()
		if s := b.Stats(); s.Refused != 3 || s.Failed != 1 {
			t.Errorf("stats: %+v", s)
		}
	})
}

// One item makes the engine refuse the whole call: the others get through, and it is told apart.
func TestOneItemSpoilsTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, Config{})
		HandleFunc(b.Worker, "echo", echo)
		b.engine.onReport = func(_ context.Context, r umbel.ReportRequest) error {
			for _, it := range r.Items {
				if string(it.Result.Data) == "bad" {
					return umbel.Invalid("item", "bad", "cannot travel")
				}
			}
			return nil
		}
		b.engine.add(40, row("echo"))
		b.engine.add(1, umbel.ClaimedRow{Row: umbel.Row{Type: "echo", Input: umbel.Payload{Data: []byte("bad")}}})
		b.engine.add(40, row("echo"))
		b.start()
		time.Sleep(time.Second)
		b.stopped()
		if ends, _, _ := b.engine.state(); ends != 81 {
			t.Errorf("resolved %d", ends)
		}
		if f := b.engine.end(40).Failure; f == nil || f.Type != umbel.FailureInvalidResult {
			t.Errorf("the bad one: %+v", f)
		}
	})
}
