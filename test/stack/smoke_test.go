package stack

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/worker"
)

var (
	echo   = umbel.Define[string, string]("echo")
	double = umbel.Define[int, int]("double")
)

// numbers are the integers below n.
func numbers(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func register(w *worker.Worker) {
	worker.Handle(w, echo, func(_ context.Context, in string) (string, error) { return in, nil })
	worker.Handle(w, double, func(_ context.Context, in int) (int, error) { return 2 * in, nil })
}

func TestFanOut(t *testing.T) {
	onEach(t, func(s *stack) {
		e := s.open()
		s.work(e, worker.Config{}, register)
		run, err := client.FanOut(s.t.Context(), s.connect(e), double, slices.Values(numbers(1000)), client.WorkflowID("w"))
		if err != nil {
			s.t.Fatal(err)
		}
		got, err := run.Gather(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		for i, v := range got {
			if v != 2*i {
				s.t.Fatalf("result %d is %d", i, v)
			}
		}
		if len(got) != 1000 {
			s.t.Fatalf("%d results", len(got))
		}
		s.history(e, "w")
	})
}

func TestByHand(t *testing.T) {
	onEach(t, func(s *stack) {
		e := s.open()
		s.start(e, "w", rows(3), retry(umbel.RetryPolicy{MaxAttempts: 1})...)
		held := s.claim(e, 3)
		s.counts(e, "w", umbel.Counts{Scheduled: 3, Claimed: 3})
		s.verdict(e, done(held[0]), umbel.Recorded)
		s.verdict(e, done(held[0]), umbel.Dropped)
		s.verdict(e, released(held[1]), umbel.Released)
		s.verdict(e, failed(held[2]), umbel.Recorded)
		s.counts(e, "w", umbel.Counts{Scheduled: 3, Pending: 1, Completed: 1, Failed: 1})
		s.finish(e, s.claim(e, 1))
		if d := s.describe(e, "w"); d.Status != umbel.StatusFailed || d.Counts.Completed != 2 {
			s.t.Fatalf("%+v", d)
		}
		s.history(e, "w")
	})
}

// A workflow that nobody started is not found, whatever is asked of it.
func TestUnknownWorkflow(t *testing.T) {
	onEach(t, func(s *stack) {
		e, ctx := s.open(), s.t.Context()
		_, describe := e.Describe(ctx, umbel.DescribeRequest{Namespace: ns, WorkflowID: "none"})
		_, results := e.Results(ctx, umbel.ResultsRequest{Namespace: ns, WorkflowID: "none"})
		_, cancel := e.Cancel(ctx, umbel.CancelRequest{Namespace: ns, WorkflowID: "none"})
		_, history := e.History(ctx, umbel.HistoryRequest{Namespace: ns, WorkflowID: "none"})
		for i, err := range []error{describe, results, cancel, history} {
			if !errors.Is(err, umbel.ErrNotFound) {
				s.t.Errorf("call %s: %v, want not found", strconv.Itoa(i), err)
			}
		}
	})
}
