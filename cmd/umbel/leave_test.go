//go:build unix

package main

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// However a run without a name ends early, its server is not left with rows that nobody will ever run.
func TestRunLeavesNothingOpen(t *testing.T) {
	t.Parallel()
	const items = "a\nb\nc\nd\n"
	rows := []string{"run", "-j", "1", "--", "sh", "-c", "echo up >&2; cat; exec sleep 0.1"}
	for name, end := range map[string]func(t *testing.T, env string){
		"hangup": func(t *testing.T, env string) {
			s := background(t, items, []string{"run", "--", "sh", "-c", "echo up >&2; exec sleep 600"}, env)
			s.await("[0] up")
			s.signal(syscall.SIGHUP)
			s.exits(130)
		},
		"reader gone": func(t *testing.T, env string) {
			cmd := umbelCommand(t, rows, env)
			cmd.Stdin = strings.NewReader(items)
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			_ = r.Close()
			cmd.Stdout = w
			fails(t, cmd, "broken pipe; what was left is cancelled")
			_ = w.Close()
		},
		"disk full": func(t *testing.T, env string) {
			full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
			if err != nil {
				t.Log(err)
				return
			}
			defer full.Close()
			cmd := umbelCommand(t, rows, env)
			cmd.Stdin, cmd.Stdout = strings.NewReader(items), full
			fails(t, cmd, "no space left on device; what was left is cancelled")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := dev(t)
			end(t, env)
			if got := umbelOutput(t, "", []string{"list", "--status", "running", "--format", "json"}, env); got != "" {
				t.Errorf("still open:\n%s", got)
			}
		})
	}
}

// fails runs cmd to its end, which must be exit code 1 with text on standard error.
func fails(t *testing.T, cmd *exec.Cmd, text string) {
	t.Helper()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	err := cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(stderr.String(), text) {
		t.Errorf("it ends with %v and says\n%s", err, stderr.String())
	}
}

// Ctrl-C ends a run, and its commands, whose output nobody reads on.
func TestRunIsInterruptedWhileItWrites(t *testing.T) {
	t.Parallel()
	env := dev(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	errRead, errWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := umbelCommand(t, []string{"run", "-j", "1", "-k", "--", "sh", "-c", "echo up >&2; test {} != b || exec sleep 600; head -c 1000000 /dev/zero"}, env)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("a\nb\n"), w, errWrite
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = w.Close(), errWrite.Close()
	s := newSession(t, cmd, errRead)
	s.await("[1] up")
	if _, err := r.Read(make([]byte, 1)); err != nil { // it writes, more than a pipe holds
		t.Fatal(err)
	}
	s.signal(syscall.SIGINT)
	if out := s.exits(130); !strings.Contains(out, "umbel: interrupted; what was left is cancelled") {
		t.Errorf("it said\n%s", out)
	}
}

// A run whose redis-server ends says that and no more, and goes on when there is one again.
func TestRunWithoutItsRedis(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	args := func(command ...string) []string {
		return append([]string{"run", "--data", data, "--workflow-id", "w", "-k", "--"}, command...)
	}
	s := background(t, "a\nb\n", args("sh", "-c", "echo up >&2; exec sleep 600"))
	s.await("[0] up")
	endRedis(t, data)
	if out := s.exits(1); !strings.Contains(out, "umbel: redis-server in "+data+" has ended (exit status 0)") || strings.Contains(out, "umbel dev") {
		t.Errorf("it said\n%s", out)
	}
	if got := umbelOutput(t, "a\nb\n", args("cat")); got != "ab" {
		t.Errorf("run again it prints %q", got)
	}
}

// Who has asked for it, as nohup does, is not told that the terminal went away.
func TestHangupIsIgnored(t *testing.T) {
	t.Parallel()
	gate, items := writeFile(t, "gate", ""), writeFile(t, "items", "a\n")
	s := terminalShell(t, `sh -c 'trap "" HUP; exec umbel run -- sh -c "echo up >&2; while test -e $0; do sleep 0.01; done" < $1' `+gate+" "+items, "UMBEL_ADDR=")
	s.await("[0] up")
	s.signal(syscall.SIGHUP)
	if err := os.Remove(gate); err != nil {
		t.Fatal(err)
	}
	s.exits(0)
}
