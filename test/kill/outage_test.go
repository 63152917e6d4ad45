package kill_test

import (
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/testredis"
	"github.com/umbelhq/umbel/test/witness"
)

// Redis is away for longer than a lease, while a worker runs a thousand rows that it cannot renew. Whether the worker
// lets them run on or ends them, since another might have them by now: nobody pays, no attempt fails (13).
func TestKillRedisCostsNoAttempt(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"linger", "yield"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			testOutage(t, how)
		})
	}
}

func testOutage(t *testing.T, how string) {
	redis := testredis.Real(t, testredis.AppendOnly("always"))
	const id = "outage"
	startAndKill(t, redis, id)
	watch := witness.Observe(t, redis, id)
	w := witness.Start(t, role(how, redis.URL, id))
	watch.Until(t, w, func(c umbel.Counts) bool { return c.Claimed == rows })
	redis.Kill(t)
	away := time.NewTimer(lease * 3 / 2) // the time that passes is what is tested
	defer away.Stop()
	<-away.C
	redis.Restart(t)
	watch.Until(t, w, func(c umbel.Counts) bool { return c.Completed == rows })
	w.Kill()

	g := witness.Start(t, role("gather", redis.URL, id))
	g.Ended(t)
	if got := g.Stdout.String(); got != squares() {
		t.Error(firstDifference(got, squares()))
	}
	if h := witness.ReadHistory(t, redis, id, rows); len(h.Failures) > 0 || h.Attempts != 1 {
		t.Errorf("attempts failed: %v, or were spent: %d; the worker said\n%s", h.Failures, h.Attempts, witness.Tail(w.Stderr.String()))
	}
}
