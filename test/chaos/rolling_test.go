package chaos_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	api "github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/test/witness"
)

// echo is what workers run: the command gives back what it gets.
var echo = api.Define[api.Payload, api.Payload]("default")

// Must show 3 of the network: both servers and all workers are restarted one by one, as an operator does, while
// clients start fan-outs and gather them. No call of a client fails, and no row needs a second attempt.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	rounds := 1
	if witness.Full() {
		rounds = 5
	}
	in := install(t, api.DefaultLease, "sh", "-c", "sleep 0.02; cat") // a row that nobody gave back would show, late
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var load sync.WaitGroup
	var started atomic.Int64
	var ids sync.Map
	const clients, rows = 4, 25
	for i := range clients {
		c := in.connect()
		load.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				id := api.WorkflowID(fmt.Sprintf("roll %d/%d", i, n))
				if err := fanOut(t.Context(), c, id, rows); err != nil {
					t.Errorf("%s: %v", id, err)
					return
				}
				ids.Store(id, true)
				started.Add(1)
			}
		})
	}
	atWork := func() {
		for before := started.Load(); started.Load() < before+2*clients && ctx.Err() == nil && !t.Failed(); {
			time.Sleep(10 * time.Millisecond) // real processes are waited for
		}
	}
	for range rounds {
		for i := range in.servers {
			atWork()
			in.servers[i].Stop(t)
			in.startServer(i)
			in.ready(i)
		}
		for i := range in.workers {
			atWork()
			in.workers[i].Stop(t)
			in.startWorker(i)
		}
	}
	atWork()
	stop()
	load.Wait()

	n := 0
	for id := range ids.Range {
		h := witness.ReadHistory(t, in.redis, id.(api.WorkflowID), rows) //nolint:forcetypeassert // the only kind stored
		if h.Attempts != 1 || len(h.Failures) > 0 {
			t.Errorf("%v: %d attempts, failures %v; want every row to end with attempt 1", id, h.Attempts, h.Failures)
		}
		n++
	}
	t.Logf("%d fan-outs of %d rows while %d processes were restarted", n, rows, rounds*(len(in.servers)+len(in.workers)))
}

func fanOut(ctx context.Context, c *client.Client, id api.WorkflowID, rows int) error {
	inputs := make([]api.Payload, rows)
	for i := range inputs {
		inputs[i] = api.Payload{ContentType: "text/plain", Data: fmt.Appendf(nil, "%s: %d", id, i)}
	}
	run, err := client.FanOut(ctx, c, echo, slices.Values(inputs), client.WorkflowID(id))
	if err != nil {
		return err
	}
	out, err := run.Gather(ctx)
	if err != nil {
		return err
	}
	for i, p := range out {
		if string(p.Data) != string(inputs[i].Data) {
			return fmt.Errorf("ordinal %d returned %q, want %q", i, p.Data, inputs[i].Data)
		}
	}
	return nil
}
