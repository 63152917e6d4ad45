package kill_test

import (
	"os/exec"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/testredis"
)

// Redis is away for longer than a lease, while a worker holds rows that it could not renew. Nobody pays for that:
// no attempt fails (13), and each file is there once.
func TestKillRedisCostsNoAttempt(t *testing.T) {
	t.Parallel()
	const files, lease = 3_000, umbel.MinLease
	random := seeded(t)
	dir, want := tree(t, random, files)
	redis := testredis.Real(t, testredis.AppendOnly("always"))
	watch := observe(t, redis, "w")
	program := start(t, exec.Command(checksum,
		"--redis", redis.URL, "--workflow-id", "w", "--lease", lease.String(), dir))
	before := watch.until(t, program, func(c umbel.Counts) bool {
		return c.Resolved() > files/10 && len(watch.leases(t, program)) > 0
	})
	redis.Kill(t)
	t.Logf("killed Redis at %+v", before)
	away := time.NewTimer(lease * 3 / 2) // the time that passes is what is tested
	defer away.Stop()
	<-away.C
	redis.Restart(t)
	program.ended(t)
	if got := program.stdout.String(); got != want {
		t.Error(firstDifference(got, want))
	}
	if h := readHistory(t, redis, "w", files); len(h.failures) > 0 {
		t.Errorf("attempts failed: %v", h.failures)
	}
}
