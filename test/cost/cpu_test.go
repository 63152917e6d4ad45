package cost

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/internal/testredis"
	"github.com/umbelhq/umbel/server"
	"github.com/umbelhq/umbel/worker"
)

var activity = umbel.Define[umbel.Payload, umbel.Payload]("cost")

var (
	input  = umbel.Payload{ContentType: "text/plain", Data: []byte(spansInput[:100])}
	result = umbel.Payload{ContentType: "text/plain", Data: []byte(spansResult[:20])}
)

func serve(t testing.TB, r *testredis.Redis, prefix string) *server.Server {
	t.Helper()
	e, err := server.Open(context.Background(), r.Client, server.Config{Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func repeat[T any](v T, n int) iter.Seq[T] {
	return func(yield func(T) bool) {
		for range n {
			if !yield(v) {
				return
			}
		}
	}
}

func start(t testing.TB, e *server.Server, n int, opts ...client.StartOption) *client.Run[umbel.Payload] {
	t.Helper()
	c, err := client.New(e, client.Config{})
	if err != nil {
		t.Fatal(err)
	}
	run, err := client.FanOut(context.Background(), c, activity, repeat(input, n), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// byHand takes n rows through their life in batches, as spans does: all claims, then all reports.
func byHand(t testing.TB, e *server.Server, n, batch int) {
	t.Helper()
	ctx := context.Background()
	start(t, e, n)
	poll := umbel.PollRequest{
		Namespace: umbel.DefaultNamespace, TaskQueue: umbel.DefaultTaskQueue, Types: []string{activity.Name()},
		Worker: "cost", MaxRows: batch, Wait: time.Second,
	}
	var tokens []umbel.Token
	for len(tokens) < n {
		reply, err := e.Poll(ctx, poll)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range reply.Rows {
			tokens = append(tokens, row.Token)
		}
	}
	for part := range slices.Chunk(tokens, batch) {
		req := umbel.ReportRequest{Namespace: umbel.DefaultNamespace, Worker: "cost"}
		for _, tok := range part {
			req.Items = append(req.Items, umbel.ReportItem{Token: tok, Outcome: umbel.OutcomeCompleted, Result: result})
		}
		reply, err := e.Report(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range reply.Verdicts {
			if v.Code != umbel.Recorded {
				t.Fatalf("verdict %+v", v)
			}
		}
	}
}

// bySDK lets a worker of 100 slots with an empty handler do it.
func bySDK(t testing.TB, e *server.Server, n int) {
	t.Helper()
	run := start(t, e, n)
	w, err := worker.New(e, worker.Config{Concurrency: 100})
	if err != nil {
		t.Fatal(err)
	}
	worker.Handle(w, activity, func(context.Context, umbel.Payload) (umbel.Payload, error) { return result, nil })
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	if err := run.Wait(ctx); err != nil {
		t.Error(err)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestRedisCPUOfARow holds the CPU time that Redis spends on a row, all of its life, to 1.5 times the yardstick's, both
// at batches of 100. Batches of 10 and what the SDK makes of an empty handler are printed.
func TestRedisCPUOfARow(t *testing.T) {
	n, rounds := 10_000, 5
	if full() {
		n = 50_000
	}
	r := testredis.Real(t, testredis.AppendOnly("everysec"))
	measure := func(f func()) float64 {
		before := r.CPU(t)
		f()
		return float64((r.CPU(t) - before).Nanoseconds()) / 1e3 / float64(n)
	}
	var ratios []float64
	figures := map[string][]float64{}
	for round := range rounds {
		e := serve(t, r, fmt.Sprintf("cost%d", round))
		s100 := measure(func() { spans{r.Client}.run(t, n, 100) })
		u100 := measure(func() { byHand(t, e, n, 100) })
		s10 := measure(func() { spans{r.Client}.run(t, n, 10) })
		u10 := measure(func() { byHand(t, e, n, 10) })
		sdk := measure(func() { bySDK(t, e, n) })
		ratios = append(ratios, u100/s100)
		for name, v := range map[string]float64{"spans/100": s100, "umbel/100": u100, "spans/10": s10, "umbel/10": u10, "umbel/sdk": sdk} {
			figures[name] = append(figures[name], v)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		r.Client.FlushAll(t.Context())
	}
	for _, name := range []string{"spans/100", "umbel/100", "spans/10", "umbel/10", "umbel/sdk"} {
		t.Logf("%-10s %s µs of Redis CPU a row", name, spread(figures[name]))
	}
	t.Logf("ratio at batches of 100: %s", spread(ratios))
	if m := median(ratios); m > 1.5 {
		t.Errorf("a row costs %.2f times the yardstick, want at most 1.5", m)
	}
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[len(s)/2]
}

func spread(v []float64) string {
	return fmt.Sprintf("median %.2f (%.2f to %.2f)", median(v), slices.Min(v), slices.Max(v))
}
