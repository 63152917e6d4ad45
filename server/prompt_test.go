package server_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/testredis"
)

// Redis hangs, and the caller has no deadline but gives up: every call but the staging ones returns at once.
func TestCallsEndWhenRedisHangs(t *testing.T) {
	t.Parallel()
	const ns, hang = umbel.DefaultNamespace, 4 * time.Second
	r := testredis.Real(t)
	s := serve(t, r)
	commit(t, s, "w")
	reply, err := s.Poll(t.Context(), umbel.PollRequest{
		Namespace: ns, TaskQueue: umbel.DefaultTaskQueue, Types: []string{"a"}, Worker: "w", MaxRows: 1, Wait: 10 * time.Second,
	})
	if err != nil || len(reply.Rows) != 1 {
		t.Fatal(reply, err)
	}
	token := reply.Rows[0].Token
	calls := map[string]func(ctx context.Context) error{
		"begin": func(ctx context.Context) error {
			_, err := s.Begin(ctx, umbel.BeginRequest{Namespace: ns, WorkflowID: "v"})
			return err
		},
		"commit": func(ctx context.Context) error {
			_, err := s.Commit(ctx, umbel.CommitRequest{Namespace: ns, WorkflowID: "v", Scheduled: 1, Rows: []umbel.StagedRow{{Type: "a"}}})
			return err
		},
		"describe": func(ctx context.Context) error {
			_, err := s.Describe(ctx, umbel.DescribeRequest{Namespace: ns, WorkflowID: "w"})
			return err
		},
		"results": func(ctx context.Context) error {
			_, err := s.Results(ctx, umbel.ResultsRequest{Namespace: ns, WorkflowID: "w"})
			return err
		},
		"history": func(ctx context.Context) error {
			_, err := s.History(ctx, umbel.HistoryRequest{Namespace: ns, WorkflowID: "w"})
			return err
		},
		"list": func(ctx context.Context) error {
			_, err := s.List(ctx, umbel.ListRequest{Namespace: ns})
			return err
		},
		"cancel": func(ctx context.Context) error {
			_, err := s.Cancel(ctx, umbel.CancelRequest{Namespace: ns, WorkflowID: "w", Ordinals: []int64{0}})
			return err
		},
		"renew": func(ctx context.Context) error {
			_, err := s.Renew(ctx, umbel.RenewRequest{Namespace: ns, Worker: "w", Tokens: []umbel.Token{token}})
			return err
		},
		"report": func(ctx context.Context) error {
			_, err := s.Report(ctx, umbel.ReportRequest{
				Namespace: ns, Worker: "w", Items: []umbel.ReportItem{{Token: token, Outcome: umbel.OutcomeCompleted}},
			})
			return err
		},
	}
	if err := r.Client.Do(t.Context(), "CLIENT", "PAUSE", hang.Milliseconds(), "ALL").Err(); err != nil {
		t.Fatal(err)
	}
	ctx, giveUp := context.WithCancel(t.Context())
	began := time.Now()
	type ended struct {
		name string
		err  error
		took time.Duration
	}
	all := make(chan ended)
	for name, call := range calls {
		go func() {
			err := call(ctx)
			all <- ended{name, err, time.Since(began)}
		}()
	}
	time.AfterFunc(300*time.Millisecond, giveUp) // by then they wait for Redis
	for range calls {
		e := <-all
		if !errors.Is(e.err, umbel.ErrUnavailable) || !errors.Is(e.err, context.Canceled) {
			t.Errorf("%s: %v", e.name, e.err)
		}
		if e.took > hang/2 {
			t.Errorf("%s took %v", e.name, e.took)
		}
	}
}
