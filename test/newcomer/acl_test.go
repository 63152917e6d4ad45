package newcomer

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/internal/testredis"
	"github.com/umbelhq/umbel/server"
	"github.com/umbelhq/umbel/worker"
)

// The user that docs/production.md makes may do all that Umbel does, and Redis refuses it nothing.
func TestUserOfProductionSuffices(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/production.md")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile("(?m)^```acl\n(user umbel .*)$").FindSubmatch(text)
	if line == nil {
		t.Fatal("docs/production.md shows no user")
	}
	r := testredis.Real(t)
	args := []any{"acl", "setuser"}
	for _, word := range strings.Fields(string(line[1]))[1:] {
		args = append(args, word)
	}
	if err := r.Client.Do(t.Context(), args...).Err(); err != nil {
		t.Fatal(err)
	}
	user := redis.NewClient(&redis.Options{Addr: r.Addr, Username: "umbel", Password: "secret", ContextTimeoutEnabled: true})
	defer user.Close()
	live(t, user)
	refused, err := r.Client.Do(t.Context(), "acl", "log").Slice()
	if err != nil || len(refused) > 0 {
		t.Errorf("Redis refused the user %v, %v", refused, err)
	}
}

// live does most of what can be done.
func live(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	ctx, log := t.Context(), slog.New(slog.DiscardHandler)
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	engine, err := server.Open(ctx, rdb, server.Config{Logger: log})
	must("open", err)
	defer engine.Close()
	w, err := worker.New(engine, worker.Config{Logger: log})
	must("worker", err)
	half := umbel.Define[int, int]("half", umbel.Retry(umbel.RetryPolicy{Initial: 10 * time.Millisecond, MaxAttempts: 2}))
	worker.Handle(w, half, func(_ context.Context, n int) (int, error) {
		if n%2 == 1 {
			return 0, errors.New("odd")
		}
		return n / 2, nil
	})
	working, stop := context.WithCancel(ctx)
	worked := make(chan error, 1)
	go func() { worked <- w.Run(working) }()
	c, err := client.New(engine, client.Config{Logger: log})
	must("client", err)
	admin, err := client.NewAdmin(engine, client.Config{Logger: log})
	must("admin", err)

	run, err := client.FanOut(ctx, c, half, slices.Values(make([]int, 2*umbel.MaxStageRows)), client.WorkflowID("many"))
	must("start of many", err)
	_, err = run.Gather(ctx)
	must("gather", err)
	run, err = client.FanOut(ctx, c, half, slices.Values([]int{1, 2, 3}), client.WorkflowID("some fail"))
	must("start", err)
	if _, some := errors.AsType[*umbel.FanOutError](run.Wait(ctx)); !some {
		t.Error("a row that fails each time did not fail its run")
	}
	for _, err := range admin.Results(ctx, "some fail", client.ResultsQuery{Ordered: true, WithInputs: true}) {
		must("results", err)
	}
	for _, err := range admin.History(ctx, "some fail", client.HistoryQuery{}) {
		must("history", err)
	}
	run, err = client.FanOut(ctx, c, half, slices.Values([]int{2, 4}), client.WorkflowID("late"), client.StartAfter(time.Hour))
	must("start of late ones", err)
	must("cancel", run.Cancel(ctx, "no more"))
	for _, err := range admin.List(ctx, client.ListFilter{}) {
		must("list", err)
	}
	stop()
	must("work", <-worked)
}
