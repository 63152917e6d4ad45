package stack

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/worker"
)

// A row that is committed on one server is polled on another at once: the wake-up crosses Redis.
func TestWakeUpCrossesServers(t *testing.T) {
	onEach(t, func(s *stack) {
		a, b := s.open(), s.open()
		s.claim0(b)
		type got struct {
			rows []umbel.ClaimedRow
			at   time.Time
		}
		var took []time.Duration
		for i := range 10 {
			reply := make(chan got, 1)
			go func() {
				r := pollRequest(1)
				r.Wait = 20 * time.Second
				rows := s.pollFor(b, r)
				reply <- got{rows, time.Now()}
			}()
			time.Sleep(50 * time.Millisecond)
			began := time.Now()
			s.start(a, umbel.WorkflowID('a'+rune(i)), rows(1))
			g := <-reply
			if len(g.rows) != 1 {
				s.t.Fatalf("round %d: %d rows", i, len(g.rows))
			}
			took = append(took, g.at.Sub(began))
			s.finish(b, g.rows)
		}
		slow := 0
		for _, d := range took {
			if d > 100*time.Millisecond {
				slow++
			}
		}
		if s.virtual() && slow > 0 || slow > 5 { // the machine may be busy; without wake-ups all are slow
			s.t.Errorf("waits were %v", took)
		}
	})
}

// A poll that does not wait answers at once, and one that waits in its time.
func TestPollWaitsAsAsked(t *testing.T) {
	onMini(t, func(s *stack) {
		e := s.open()
		for _, wait := range []time.Duration{0, time.Millisecond, 100 * time.Millisecond, 7 * time.Second, umbel.MaxPollWait} {
			r := pollRequest(1)
			r.Wait = wait
			began := time.Now()
			if got := s.pollFor(e, r); len(got) != 0 {
				s.t.Fatal("rows out of nowhere")
			}
			if took := time.Since(began); took < wait || took > wait+time.Millisecond {
				s.t.Errorf("a poll of %v took %v", wait, took)
			}
		}
	})
}

// Promise 13: a poll whose caller goes away gives its rows back, and no attempt is spent.
func TestPromise13AbandonedPollGivesBack(t *testing.T) {
	onEach(t, func(s *stack) {
		e := s.open()
		const n = 200
		for i := range n / 10 { // polls that end while rows come
			ctx, cancel := context.WithCancel(s.t.Context())
			reply := make(chan int, 1)
			go func() {
				r := pollRequest(10)
				r.Wait = time.Second
				got, err := e.Poll(ctx, r)
				if err != nil && !errors.Is(err, umbel.ErrUnavailable) {
					s.t.Error(err)
				}
				for _, row := range got.Rows {
					s.verdict(e, released(row), umbel.Released)
				}
				reply <- len(got.Rows)
			}()
			s.start(e, umbel.WorkflowID("w"+string(rune('a'+i))), rows(10))
			cancel()
			<-reply
		}
		held := s.claim(e, n)
		for _, r := range held {
			if r.Attempt != 1 {
				s.t.Fatalf("%s is at attempt %d", r.DispatchKey(), r.Attempt)
			}
		}
		s.finish(e, held)
	})
}

// Promise 13: the rows of a worker that stops are with another at once, at no cost to their attempts.
func TestPromise13StopReleases(t *testing.T) {
	onEach(t, func(s *stack) {
		e := s.open()
		block := func(w *worker.Worker) {
			worker.Handle(w, echo, func(ctx context.Context, _ string) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			})
		}
		first := s.work(e, worker.Config{}, block)
		run, err := client.FanOut(s.t.Context(), s.connect(e), echo, func(yield func(string) bool) {
			for range 50 {
				if !yield("x") {
					return
				}
			}
		}, client.WorkflowID("w"), client.Retry(umbel.RetryPolicy{MaxAttempts: 1}))
		if err != nil {
			s.t.Fatal(err)
		}
		s.eventually("all are taken", func() bool { return s.describe(e, "w").Counts.Claimed == 50 })
		began := time.Now()
		if err := first.Stop(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
		s.work(e, worker.Config{}, register)
		if _, err := run.Gather(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
		if took := time.Since(began); s.virtual() && took > 100*time.Millisecond || took > 10*time.Second {
			s.t.Errorf("taken over after %v", took)
		}
		if n := failures(s.history(e, "w"), umbel.FailureLeaseExpired); n != 0 {
			s.t.Errorf("%d attempts were spent", n)
		}
	})
}
