package stack

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/internal/testredis"
	"github.com/umbelhq/umbel/worker"
)

// Cases from the field that need no more than the network between SDK and server to be told.

// Case 2: something in front of Redis answers LOADING, or "max requests", for 30 s while 5,000 completions are reported. In
// the end no row is claimed and history has 5,000 terminals.
func TestCase02RedisRefusesForHalfAMinute(t *testing.T) {
	for name, refusal := range map[string]string{
		"loading": "LOADING Redis is loading the dataset in memory", "max requests": "ERR max requests limit exceeded",
	} {
		t.Run(name, func(t *testing.T) {
			onMini(t, func(s *stack) {
				const n = 5000
				e := s.remote(s.open(), false)
				var ran atomic.Int64
				begun := make(chan struct{})
				s.work(e, worker.Config{Concurrency: 200}, func(w *worker.Worker) {
					worker.Handle(w, double, func(_ context.Context, in int) (int, error) {
						time.Sleep(50 * time.Millisecond)
						if ran.Add(1) == n/5 {
							close(begun)
						}
						return 2 * in, nil
					})
				})
				run, err := client.FanOut(s.t.Context(), s.connect(e), double, slices.Values(numbers(n)), client.WorkflowID("w"))
				if err != nil {
					s.t.Fatal(err)
				}
				<-begun
				s.redis.Engine(s.t).SetError(refusal)
				time.Sleep(30 * time.Second)
				s.redis.Engine(s.t).SetError("")
				got, err := run.Gather(s.t.Context())
				if err != nil || len(got) != n || got[n-1] != 2*(n-1) {
					s.t.Fatalf("%d results, %v", len(got), err)
				}
				s.counts(e, "w", umbel.Counts{Scheduled: n, Completed: n})
				if done := of(s.history(e, "w"), umbel.ActivityCompleted); done != n {
					s.t.Errorf("%d terminals", done)
				}
			})
		})
	}
}

// Case 15: what was started is found at once, over another connection and by another server.
func TestCase15FoundAtOnce(t *testing.T) {
	onEach(t, func(s *stack) {
		here, there := s.remote(s.open(), false), s.remote(s.open(), true)
		for i := range 50 {
			id := umbel.WorkflowID("w" + strconv.Itoa(i))
			run := s.start(here, id, rows(1))
			if d := s.describe(there, id); d.RunID != run {
				s.t.Fatalf("run %s, started as %s", d.RunID, run)
			}
			if _, err := there.Results(s.t.Context(), umbel.ResultsRequest{Namespace: ns, WorkflowID: id}); err != nil {
				s.t.Fatal(err)
			}
			if _, err := there.History(s.t.Context(), umbel.HistoryRequest{Namespace: ns, WorkflowID: id}); err != nil {
				s.t.Fatal(err)
			}
		}
	})
}

// Case 47: what the vocabulary, the client and a server over the network accept as a name is the same.
func TestCase47OneRuleForNames(t *testing.T) {
	run(t, testredis.Mini(t), func(s *stack) { // in real time: rapid asks for the test's deadline, which a bubble has not
		e := s.remote(s.open(), false)
		c := s.connect(e)
		names := rapid.OneOf(
			rapid.String(),
			rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
			rapid.Map(rapid.IntRange(250, 260), func(n int) string { return strings.Repeat("n", n) }),
			rapid.SampledFrom([]string{"", " ", "{}", "a}b{", ":*", "\u0085", "\u200b", "\ufffd", "\xff", "é", "😀", "\x7f", "\t"}),
		)
		fine := 0
		rapid.Check(s.t, func(t *rapid.T) {
			name := names.Draw(t, "name")
			want := umbel.ValidateName("name", name) == nil
			if want {
				fine++
			}
			ctx := s.t.Context()
			begin := func(r umbel.BeginRequest) error { _, err := e.Begin(ctx, r); return err }
			poll := func(change func(*umbel.PollRequest)) error {
				r := pollRequest(1)
				r.Namespace = "nobody"
				change(&r)
				_, err := e.Poll(ctx, r)
				return err
			}
			_, progress := client.AttachRaw(c, umbel.WorkflowID(name)).Progress(ctx)
			if errors.Is(progress, umbel.ErrNotFound) {
				progress = nil
			}
			for what, err := range map[string]error{
				"client": progress, "namespace": begin(umbel.BeginRequest{Namespace: name, WorkflowID: "w"}),
				"workflow ID": begin(umbel.BeginRequest{Namespace: ns, WorkflowID: umbel.WorkflowID(name)}),
				"task queue":  poll(func(r *umbel.PollRequest) { r.TaskQueue = name }),
				"type":        poll(func(r *umbel.PollRequest) { r.Types = []string{name} }),
				"worker":      poll(func(r *umbel.PollRequest) { r.Worker = name }),
			} {
				if err != nil && !errors.Is(err, umbel.ErrInvalid) || (err == nil) != want {
					t.Errorf("%s %q: %v, want accepted: %t", what, name, err, want)
				}
			}
		})
		if fine < 10 {
			s.t.Errorf("only %d names were fine", fine)
		}
	})
}
