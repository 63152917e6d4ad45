// Package examples_test builds the example programs and runs them as their readers do.
package examples_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// programs is where the examples are built to.
var programs string

func TestMain(m *testing.M) {
	code, err := build(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func build(m *testing.M) (int, error) {
	var err error
	if programs, err = os.MkdirTemp("", "umbel-examples-"); err != nil {
		return 0, err
	}
	defer os.RemoveAll(programs)
	if out, err := exec.Command("go", "build", "-o", programs, "./...").CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build the examples: %w\n%s", err, out)
	}
	return m.Run(), nil
}

// program returns an example to be started. It is killed if it takes longer than any of them should.
func program(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(programs, name), args...)
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// ran is how a program ended.
type ran struct {
	stdout, stderr string
	code           int
}

// run runs an example to its end.
func run(t *testing.T, name string, args ...string) ran {
	t.Helper()
	return runIn(t, "", name, args...)
}

// runIn is run in a directory.
func runIn(t *testing.T, dir, name string, args ...string) ran {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := program(t, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	err := cmd.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatalf("%s: %v", name, err)
	}
	return ran{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

func TestHello(t *testing.T) {
	t.Parallel()
	got := run(t, "hello")
	if want := "Hello, Ada!\nHello, Grace!\nHello, Katherine!\n"; got.stdout != want || got.code != 0 {
		t.Errorf("hello printed %q and exited with %d, want %q and 0; it said\n%s", got.stdout, got.code, want, got.stderr)
	}
}
