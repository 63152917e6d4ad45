package kill_test

import (
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/testredis"
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
	watch := observe(t, redis, id)
	w := start(t, role(how, redis.URL, id))
	watch.until(t, w, func(c umbel.Counts) bool { return c.Claimed == rows })
	redis.Kill(t)
	away := time.NewTimer(lease * 3 / 2) // the time that passes is what is tested
	defer away.Stop()
	<-away.C
	redis.Restart(t)
	watch.until(t, w, func(c umbel.Counts) bool { return c.Completed == rows })
	w.kill()

	g := start(t, role("gather", redis.URL, id))
	g.ended(t)
	if got := g.stdout.String(); got != squares() {
		t.Error(firstDifference(got, squares()))
	}
	if h := readHistory(t, redis, id, rows); len(h.failures) > 0 || h.attempts != 1 {
		t.Errorf("attempts failed: %v, or were spent: %d; the worker said\n%s", h.failures, h.attempts, tail(w.stderr.String()))
	}
}
