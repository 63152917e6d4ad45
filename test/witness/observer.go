package witness

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/testredis"
	"github.com/umbelhq/umbel/outbox"
)

// Observer reads how a workflow stands. It is no server: nothing lapses because it looks.
type Observer struct {
	redis *testredis.Redis
	rows  *outbox.Redis
	id    umbel.WorkflowID
}

// Observe returns an observer of the workflow of an ID in the default namespace.
func Observe(t *testing.T, redis *testredis.Redis, id umbel.WorkflowID) Observer {
	t.Helper()
	rows, err := outbox.NewRedis(t.Context(), redis.Client, outbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return Observer{redis: redis, rows: rows, id: id}
}

// Counts returns how the rows stand, zero if the workflow has not been started.
func (o Observer) Counts(t *testing.T) umbel.Counts {
	t.Helper()
	run, err := o.rows.Current(t.Context(), umbel.DefaultNamespace, o.id)
	if err != nil {
		t.Fatal(err)
	}
	if run == "" {
		return umbel.Counts{}
	}
	shard := o.rows.Shard(umbel.DefaultNamespace, o.id)
	r, err := o.rows.Run(t.Context(), shard.Index, run)
	if err != nil {
		t.Fatal(err)
	}
	st, err := o.rows.Standing(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return st.Counts
}

// Leases returns the claims that the worker of p holds, not those that an earlier one has left.
func (o Observer) Leases(t *testing.T, p *Process) []outbox.Lease {
	t.Helper()
	shard := o.rows.Shard(umbel.DefaultNamespace, o.id)
	nonces, err := o.redis.Client.ZRange(t.Context(), shard.Claims(), 0, -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	leases, err := o.rows.Leases(t.Context(), shard.Index, nonces)
	if err != nil {
		t.Fatal(err)
	}
	pid := fmt.Sprintf("-%d-", p.Cmd.Process.Pid) // as in the identity that a worker gives itself
	return slices.DeleteFunc(leases, func(l outbox.Lease) bool { return !strings.Contains(l.Worker, pid) })
}

// Gap returns when the last gap in the sweeps of the workflow's shard ended: claims got one more lease then.
func (o Observer) Gap(t *testing.T) time.Time {
	t.Helper()
	ms, err := o.redis.Client.HGet(t.Context(), o.rows.Shard(umbel.DefaultNamespace, o.id).Sweep(), "gap").Int64()
	if err != nil {
		t.Fatal(err)
	}
	return time.UnixMilli(ms)
}

// Until waits until the rows stand as ready wants them, while p runs, and returns how they stand.
func (o Observer) Until(t *testing.T, p *Process, ready func(umbel.Counts) bool) umbel.Counts {
	t.Helper()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	late := time.NewTimer(Patience)
	defer late.Stop()
	for {
		if c := o.Counts(t); ready(c) {
			return c
		}
		select {
		case <-again.C:
		case <-p.Gone:
			t.Fatalf("the program has ended (%v) where it should be killed, at %+v; it said\n%s",
				p.Err, o.Counts(t), Tail(p.Stderr.String()))
		case <-late.C:
			t.Fatalf("stuck at %+v; the program said\n%s", o.Counts(t), Tail(p.Stderr.String()))
		}
	}
}
