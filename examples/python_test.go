package examples_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/test/witness"
)

// python starts a script of examples/ as a worker of the servers at addr, and ends it with the test.
func python(t *testing.T, script, addr string, args ...string) (cmd *exec.Cmd, stdout *bufio.Reader) {
	t.Helper()
	return pythonWith(t, nil, script, addr, args...)
}

// pythonWith is python with more variables in its environment.
func pythonWith(t *testing.T, env []string, script, addr string, args ...string) (cmd *exec.Cmd, stdout *bufio.Reader) {
	t.Helper()
	lib, err := filepath.Abs("python")
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.CommandContext(t.Context(), witness.Program(t, "python3"), append([]string{script, "--addr", addr}, args...)...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+lib, "PYTHONDONTWRITEBYTECODE=1", "no_proxy=*")
	cmd.Env = append(cmd.Env, env...)
	cmd.Stderr = t.Output()
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return cmd, bufio.NewReader(pipe)
}

// begun waits until n rows run.
func begun(t *testing.T, stdout *bufio.Reader, n int) {
	t.Helper()
	for range n {
		if line, err := stdout.ReadString('\n'); err != nil || !strings.HasPrefix(line, "begun ") {
			t.Fatalf("the worker said %q, %v", line, err)
		}
	}
}

func TestPythonCountsWords(t *testing.T) {
	t.Parallel()
	addr, admin := serve(t, longLease)
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = nobody.Close()
	var texts []string
	for i := range 200 {
		texts = append(texts, strings.Repeat("wörd ", i))
	}
	start(t, admin, client.StartSpec{WorkflowID: "words", Activity: "count-words"}, texts...)
	worker, _ := python(t, "python/worker.py", nobody.Addr().String()+","+addr) // the first of its servers is away
	for i, r := range outcomes(t, admin, "words") {
		if got, want := string(r.Value.Data), fmt.Sprint(i); got != want || r.Value.ContentType != "text/plain" || r.Attempt != 1 {
			t.Fatalf("result %d is %q (%s) of attempt %d, want %q of the first", i, got, r.Value.ContentType, r.Attempt, want)
		}
	}
	stopped(t, worker)
}

// stopped ends a worker as an operator does, and expects it to end well.
func stopped(t *testing.T, worker *exec.Cmd) {
	t.Helper()
	if err := worker.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := worker.Wait(); err != nil {
		t.Errorf("the worker ended with %v", err)
	}
}

func TestPythonFailsAndRetries(t *testing.T) {
	t.Parallel()
	addr, admin := serve(t, longLease)
	worker, _ := python(t, "testdata/activities.py", addr)
	start(t, admin, client.StartSpec{WorkflowID: "once-more", Activity: "once-more"}, "x")
	start(t, admin, client.StartSpec{WorkflowID: "hopeless", Activity: "hopeless"}, "x")
	start(t, admin, client.StartSpec{WorkflowID: "endless", Activity: "endless", MaxAttempts: 1, Timeout: 300 * time.Millisecond}, "x")

	if r := outcomes(t, admin, "once-more")[0]; r.Attempt != 2 || string(r.Value.Data) != "attempt 2 after RetryAfter: not yet" {
		t.Errorf("the row that fails once: attempt %d, %q, %v", r.Attempt, r.Value.Data, r.Err)
	}
	if r := outcomes(t, admin, "hopeless")[0]; r.Attempt != 1 || failureOf(r) != "NonRetryable: no good: x" {
		t.Errorf("the hopeless row: attempt %d, %v", r.Attempt, r.Err)
	}
	if r := outcomes(t, admin, "endless")[0]; failureOf(r) != "TimedOut: start-to-close exceeded" {
		t.Errorf("the endless row: %v", r.Err)
	}
	stopped(t, worker)
}

func TestPythonKilledMidRow(t *testing.T) {
	t.Parallel()
	addr, admin := serve(t, shortLease)
	start(t, admin, client.StartSpec{WorkflowID: "held", Activity: "held"}, "a", "b", "c")
	first, said := pythonWith(t, []string{"HANG=1"}, "testdata/activities.py", addr)
	begun(t, said, 3)
	second, _ := python(t, "testdata/activities.py", addr)
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for i, r := range outcomes(t, admin, "held") {
		if got, want := string(r.Value.Data), string("ABC"[i]); got != want || r.Attempt != 2 {
			t.Errorf("result %d is %q of attempt %d, want %q of the second", i, got, r.Attempt, want)
		}
	}
	stopped(t, second)
}

func TestPythonReleasesOnStop(t *testing.T) {
	t.Parallel()
	addr, admin := serve(t, longLease)
	start(t, admin, client.StartSpec{WorkflowID: "held", Activity: "held"}, "a", "b", "c")
	first, said := pythonWith(t, []string{"HANG=1"}, "testdata/activities.py", addr, "--grace", "0")
	begun(t, said, 3)
	stopped(t, first)
	second, _ := python(t, "testdata/activities.py", addr)
	for i, r := range outcomes(t, admin, "held") {
		if got, want := string(r.Value.Data), string("ABC"[i]); got != want || r.Attempt != 1 {
			t.Errorf("result %d is %q of attempt %d, want %q of the first", i, got, r.Attempt, want)
		}
	}
	stopped(t, second)
}

// Leases are renewed for as long as a row runs: longer than one here.
func TestPythonRenews(t *testing.T) {
	t.Parallel()
	addr, admin := serve(t, shortLease)
	start(t, admin, client.StartSpec{WorkflowID: "held", Activity: "held"}, "a")
	first, said := pythonWith(t, []string{"HANG=1"}, "testdata/activities.py", addr, "--grace", "0")
	begun(t, said, 1)
	_, _ = python(t, "testdata/activities.py", addr) // it would run the row if the lease lapsed
	<-time.After(shortLease + shortLease/2)
	if info, err := admin.Show(t.Context(), "held", ""); err != nil || info.Counts.Claimed != 1 {
		t.Errorf("after a lease and a half: %+v, %v", info.Counts, err)
	}
	stopped(t, first)
	if r := outcomes(t, admin, "held")[0]; r.Attempt != 1 {
		t.Errorf("attempt %d, want the first", r.Attempt)
	}
}

// failureOf is the type and message of a row that failed.
func failureOf(r umbel.Result[umbel.Payload]) string {
	f, ok := errors.AsType[*umbel.Failure](r.Err)
	if !ok {
		return fmt.Sprint(r.Err)
	}
	return f.Type + ": " + f.Message
}
