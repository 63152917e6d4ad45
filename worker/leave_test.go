package worker

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel"
)

// distant is an engine whose replies to polls take a while; who hangs up meanwhile has lost what they bring.
type distant struct{ *fake }

func (d distant) Poll(ctx context.Context, r umbel.PollRequest) (umbel.PollReply, error) {
	reply, err := d.fake.Poll(ctx, r)
	select {
	case <-time.After(10 * time.Millisecond):
		return reply, err
	case <-ctx.Done():
		return umbel.PollReply{}, &umbel.Error{Code: umbel.CodeUnavailable, Err: ctx.Err()}
	}
}

// A worker that stops does not hang up on a poll: rows that are on their way to it are released, not lost until their
// lease lapses.
func TestStopLosesNoRowOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		w, err := New(distant{f}, Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		HandleFunc(w, "job", func(context.Context, umbel.Payload) (umbel.Payload, error) { return umbel.Payload{}, nil })
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		synctest.Wait() // the poll waits
		f.add(1, umbel.ClaimedRow{Row: umbel.Row{Type: "job"}})
		synctest.Wait() // its reply is on the way
		began := time.Now()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if d := time.Since(began); d > time.Second {
			t.Errorf("the worker took %v to stop", d)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		for token, c := range f.claims {
			if !c.gone {
				t.Errorf("%s is still claimed: %+v", token, c.row)
			}
		}
		if len(f.claims) != 1 {
			t.Errorf("%d claims, want 1", len(f.claims))
		}
	})
}

// Nor does an idle worker take longer to stop than its server takes to answer.
func TestStopOfAnIdleWorkerIsPrompt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := New(distant{newFake()}, Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		HandleFunc(w, "job", func(context.Context, umbel.Payload) (umbel.Payload, error) { return umbel.Payload{}, nil })
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		began := time.Now()
		if err := w.Run(ctx); err != nil {
			t.Error(err)
		}
		if d := time.Since(began) - time.Second; d > 100*time.Millisecond {
			t.Errorf("the worker took %v to stop", d)
		}
	})
}
