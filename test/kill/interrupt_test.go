package kill_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/testredis"
	"github.com/umbelhq/umbel/test/witness"
)

// An interrupt is no kill: the program finishes what it holds, says what ended it and leaves the rest to a later
// run, which finds nothing that it would have to wait for.
func TestInterruptChecksum(t *testing.T) {
	t.Parallel()
	const files = 3_000
	dir, want := tree(t, witness.Seeded(t), files)
	redis := testredis.Real(t, testredis.AppendOnly("always"))
	watch := witness.Observe(t, redis, "w")
	launch := func() *witness.Process {
		return witness.Start(t, exec.Command(checksum, "--redis", redis.URL, "--workflow-id", "w", dir))
	}
	program := launch()
	watch.Until(t, program, func(c umbel.Counts) bool { return c.Resolved() > files/10 && c.Claimed > 0 })
	if err := program.Cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	<-program.Gone
	if code := program.Cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if said := program.Stderr.String(); said != "checksum: interrupt signal received\n" || program.Stdout.String() != "" {
		t.Errorf("it said %q and printed %q", said, program.Stdout.String())
	}
	if c := watch.Counts(t); c.Claimed != 0 || c.Pending == 0 {
		t.Errorf("it left %+v, want nothing claimed and something to do", c)
	}
	again := launch()
	again.Ended(t)
	if got := again.Stdout.String(); got != want {
		t.Error(firstDifference(got, want))
	}
	if h := witness.ReadHistory(t, redis, "w", files); len(h.Failures) > 0 || strings.Contains(again.Stderr.String(), "\x1b") {
		t.Errorf("attempts failed: %v; the later run said %q", h.Failures, again.Stderr.String())
	}
}
