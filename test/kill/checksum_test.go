package kill_test

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/testredis"
	"github.com/umbelhq/umbel/outbox"
	"github.com/umbelhq/umbel/test/witness"
)

// tree makes n files and returns the lines that checksum must print for them.
func tree(t *testing.T, random *rand.Rand, n int) (dir, want string) {
	t.Helper()
	const perDir, mostBytes = 100, 2048
	dir = t.TempDir()
	lines := make([]string, 0, n)
	content := make([]byte, mostBytes)
	for i := range n {
		sub := fmt.Sprintf("%s/%04d", dir, i/perDir)
		if i%perDir == 0 {
			if err := os.Mkdir(sub, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		b := content[:random.IntN(mostBytes)]
		for j := range b {
			b[j] = byte(random.Uint32())
		}
		path := fmt.Sprintf("%s/file %02d", sub, i%perDir)
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%x  %s\n", sha256.Sum256(b), path))
	}
	return dir, strings.Join(lines, "") // in the order of their paths
}

// strike is a kill to come.
type strike struct {
	at    int64 // once so many rows are resolved
	redis bool  // kills Redis; else the program
}

// strikes draws when to kill what.
func strikes(random *rand.Rand, files, programs, redises int) []strike {
	out := make([]strike, programs+redises)
	for i := range out {
		out[i] = strike{at: 1 + random.Int64N(int64(files)*9/10), redis: i >= programs}
	}
	slices.SortFunc(out, func(a, b strike) int { return int(a.at - b.at) })
	return out
}

// Must show 3 of the kernel: each file once and right, whoever dies on the way. Promises 3, 6, 7, 8, 11 and 13.
func TestKillChecksum(t *testing.T) {
	t.Parallel()
	files, programs, redises := 3_000, 2, 1
	if witness.Full() {
		files, programs, redises = 20_000, 5, 3
	}
	random := witness.Seeded(t)
	dir, want := tree(t, random, files)
	redis := testredis.Real(t, testredis.AppendOnly("always"))
	watch := witness.Observe(t, redis, "w")
	launch := func() *witness.Process {
		return witness.Start(t, exec.Command(checksum, "--redis", redis.URL, "--workflow-id", "w", "--lease", "2s", dir))
	}

	program := launch()
	marked := false // a claim that is known to have reached its worker was killed
	for _, s := range strikes(random, files, programs, redises) {
		var held []outbox.Lease
		before := watch.Until(t, program, func(c umbel.Counts) bool {
			if c.Resolved() < s.at || c.Claimed == 0 {
				return false
			}
			held = watch.Leases(t, program)
			return len(held) > 0 && (s.redis || marked || slices.ContainsFunc(held, isDelivered))
		})
		if s.redis {
			redis.Restart(t)
			t.Logf("killed Redis at %+v, %d claims held", before, len(held))
			continue
		}
		program.Kill()
		marked = true
		after, left := watch.Counts(t), watch.Leases(t, program)
		t.Logf("killed the program at %+v, %d claims held; left %+v, %d claims", before, len(held), after, len(left))
		if after.Claimed == 0 || len(left) == 0 {
			t.Errorf("the kill at %+v met no row that the program had claimed", before)
		}
		program = launch()
	}
	program.Ended(t)
	if got := program.Stdout.String(); got != want {
		t.Errorf("%d bytes of output differ from the %d that are right:\n%s", len(got), len(want), firstDifference(got, want))
	}

	h := witness.ReadHistory(t, redis, "w", int64(files))
	if h.Failures[umbel.FailureLeaseExpired] == 0 {
		t.Errorf("no lease expired: the kills met nothing that a worker had")
	}
	h.Only(t, umbel.FailureLeaseExpired)
	again := launch() // a run that is over is printed again
	again.Ended(t)
	if again.Stdout.String() != want {
		t.Error("a later run prints something else")
	}
}

// isDelivered says that a claim is on record as having reached its worker, so that its lapse costs an attempt.
func isDelivered(l outbox.Lease) bool { return l.Delivered }

func firstDifference(got, want string) string {
	g, w := strings.SplitAfter(got, "\n"), strings.SplitAfter(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d is\n%qwant\n%q", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}
