package kill_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/testredis"
)

// An interrupt is no kill: the program finishes what it holds, says what ended it and leaves the rest to a later
// run, which finds nothing that it would have to wait for.
func TestInterruptChecksum(t *testing.T) {
	t.Parallel()
	const files = 3_000
	dir, want := tree(t, seeded(t), files)
	redis := testredis.Real(t, testredis.AppendOnly("always"))
	watch := observe(t, redis, "w")
	launch := func() *process {
		return start(t, exec.Command(checksum, "--redis", redis.URL, "--workflow-id", "w", dir))
	}
	program := launch()
	watch.until(t, program, func(c umbel.Counts) bool { return c.Resolved() > files/10 && c.Claimed > 0 })
	if err := program.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	<-program.gone
	if code := program.cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if said := program.stderr.String(); said != "checksum: interrupt signal received\n" || program.stdout.String() != "" {
		t.Errorf("it said %q and printed %q", said, program.stdout.String())
	}
	if c := watch.counts(t); c.Claimed != 0 || c.Pending == 0 {
		t.Errorf("it left %+v, want nothing claimed and something to do", c)
	}
	again := launch()
	again.ended(t)
	if got := again.stdout.String(); got != want {
		t.Error(firstDifference(got, want))
	}
	if h := readHistory(t, redis, "w", files); len(h.failures) > 0 || strings.Contains(again.stderr.String(), "\x1b") {
		t.Errorf("attempts failed: %v; the later run said %q", h.failures, again.stderr.String())
	}
}
