package cost

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/internal/testredis"
	"github.com/umbelhq/umbel/server"
)

// claims takes n rows in claims of batch and returns Redis's CPU time a row.
func claims(t *testing.T, r *testredis.Redis, e *server.Server, types []string, n, batch int) float64 {
	t.Helper()
	before := r.CPU(t)
	for got := 0; got < n; {
		reply, err := e.Poll(context.Background(), umbel.PollRequest{
			Namespace: umbel.DefaultNamespace, TaskQueue: umbel.DefaultTaskQueue, Types: types,
			Worker: "cost", MaxRows: batch, Wait: time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		got += len(reply.Rows)
	}
	return float64((r.CPU(t) - before).Nanoseconds()) / 1e3 / float64(n)
}

// compare claims the same rows in two settings in turn, and holds the second to most times the first.
func compare(t *testing.T, most float64, open func(t *testing.T, round int, second bool) (*testredis.Redis, *server.Server, []string)) {
	t.Helper()
	n, rounds := 15_000, 9
	if full() {
		n = 50_000
	}
	var cost [2][]float64
	for round := range rounds {
		for i := range cost {
			r, e, types := open(t, round, i == 1)
			start(t, e, n)
			cost[i] = append(cost[i], claims(t, r, e, types, n, 100))
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%s, and %s µs of Redis CPU a row", spread(cost[0]), spread(cost[1]))
	// what else the machine does only adds to a figure: the least of each is nearest to the truth
	if ratio := slices.Min(cost[1]) / slices.Min(cost[0]); ratio > most {
		t.Errorf("a claim costs %.2f times as much, want at most %.1f", ratio, most)
	} else {
		t.Logf("ratio %.2f", ratio)
	}
}

// TestClaimWithManyTypes: 200 registered types cost a claim at most 1.2 times what one does.
func TestClaimWithManyTypes(t *testing.T) {
	r := testredis.Real(t)
	many := []string{activity.Name()}
	for i := range 199 {
		many = append(many, fmt.Sprintf("type %d", i))
	}
	compare(t, 1.2, func(t *testing.T, round int, second bool) (*testredis.Redis, *server.Server, []string) {
		e := serve(t, r, fmt.Sprintf("types%d%v", round, second))
		if second {
			return r, e, many
		}
		return r, e, many[:1]
	})
}

// TestClaimAmongOpenRuns: 10,000 open runs elsewhere, each on a queue of its own, cost a claim at most 1.2 times what
// it costs without.
func TestClaimAmongOpenRuns(t *testing.T) {
	quiet, busy := testredis.Real(t), testredis.Real(t)
	c, err := client.New(serve(t, busy, "runs"), client.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10_000 {
		if _, err := client.FanOut(t.Context(), c, activity, repeat(input, 1), client.TaskQueue(fmt.Sprintf("queue %d", i))); err != nil {
			t.Fatal(err)
		}
	}
	compare(t, 1.2, func(t *testing.T, _ int, second bool) (*testredis.Redis, *server.Server, []string) {
		if second {
			return busy, serve(t, busy, "runs"), []string{activity.Name()}
		}
		return quiet, serve(t, quiet, "runs"), []string{activity.Name()}
	})
}
