package kill_test

import (
	"bufio"
	"os"
	"os/exec"
	"testing"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/testredis"
	"github.com/umbelhq/umbel/test/witness"
)

// role returns this test binary as another program.
func role(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), roleVar+"="+name)
	return cmd
}

// startAndKill has a process start a fan-out and kills it as soon as it says so.
func startAndKill(t *testing.T, redis *testredis.Redis, id string) {
	t.Helper()
	a := role("start", redis.URL, id)
	out, err := a.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(); err != nil {
		t.Fatal(err)
	}
	said, err := bufio.NewReader(out).ReadString('\n')
	_ = a.Process.Kill()
	_ = a.Wait() // killed, as the line above says
	if err != nil || said != "started\n" {
		t.Fatalf("the starter said %q, %v", said, err)
	}
}

// A process starts a fan-out and is killed before any of it has run. Others run it and gather it by its name.
func TestKillTheStarter(t *testing.T) {
	t.Parallel()
	redis := testredis.Real(t, testredis.AppendOnly("always"))
	const id = "squares: {of} *all* ✿"

	startAndKill(t, redis, id)
	if c := witness.Observe(t, redis, id).Counts(t); c != (umbel.Counts{Scheduled: rows, Pending: rows}) {
		t.Fatalf("the starter left %+v, want %d rows that wait", c, rows)
	}

	b := witness.Start(t, role("gather", redis.URL, id)) // it waits for what is not yet done
	w := witness.Start(t, role("work", redis.URL, id))
	b.Ended(t)
	w.Kill()
	c := witness.Start(t, role("gather", redis.URL, id)) // it reads what is
	c.Ended(t)
	for name, p := range map[string]*witness.Process{"while it ran": b, "afterwards": c} {
		if got := p.Stdout.String(); got != squares() {
			t.Errorf("gathered %s: %s", name, firstDifference(got, squares()))
		}
	}
	if h := witness.ReadHistory(t, redis, id, rows); len(h.Failures) > 0 {
		t.Errorf("attempts failed: %v", h.Failures)
	}
}
