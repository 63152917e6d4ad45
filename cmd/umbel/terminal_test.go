//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
)

// On a terminal `start --wait` draws a bar; Ctrl-C detaches and says how to look again, and the work goes on.
func TestStartDetaches(t *testing.T) {
	t.Parallel()
	env := dev(t)
	s := terminal(t, []string{"start", "--workflow-id", "w x", "--wait"}, env)
	s.await("reading items from the terminal")
	_, _ = s.input.Write([]byte("a\nb\n\x04"))
	s.await("(0/2") // the bar
	s.interrupt()
	out := s.exits(130)
	if !strings.Contains(out, "umbel: detached; the work goes on. Look again with: umbel watch 'w x'") {
		t.Errorf("it said\n%s", out)
	}
	if got := umbelOutput(t, "", []string{"show", "w x"}, env); !strings.Contains(got, "status     running") {
		t.Errorf("afterwards the run is\n%s", got)
	}
}

// Ctrl-C ends a start that still reads.
func TestStartIsInterrupted(t *testing.T) {
	t.Parallel()
	env := dev(t)
	s := terminal(t, []string{"start", "--workflow-id", "w"}, env)
	s.await("reading items from the terminal")
	s.interrupt()
	if out := s.exits(130); !strings.Contains(out, "umbel: interrupted while starting") {
		t.Errorf("it said\n%s", out)
	}
	if got := background(t, "", []string{"show", "w"}, env).exits(3); !strings.Contains(got, "no such workflow") {
		t.Errorf("afterwards show says\n%s", got)
	}
}

func TestFollowersDetach(t *testing.T) {
	t.Parallel()
	env := dev(t)
	umbelOutput(t, "a\n", []string{"start", "--workflow-id", "w"}, env)
	for _, tc := range []struct {
		args       []string
		sees, hint string
	}{
		{[]string{"watch", "w"}, "(0/1", "umbel watch w"},
		{[]string{"watch", "w", "--format", "json"}, `"running"`, "umbel watch w"},
		{[]string{"history", "w", "--follow"}, "ActivityStarted", "umbel history w"},
	} {
		s := terminal(t, tc.args, env)
		s.await(tc.sees)
		s.interrupt()
		if out := s.exits(130); !strings.Contains(out, "umbel: detached; the work goes on. Look again with: "+tc.hint) {
			t.Errorf("umbel %v said\n%s", tc.args, out)
		}
	}
	// results has nothing to print yet, so there is nothing to wait for but its first request: follow another run.
	umbelOutput(t, "a\nb\n", []string{"start", "--workflow-id", "w2"}, env)
	umbelOutput(t, "", []string{"cancel", "w2", "--ordinal", "0"}, env)
	s := terminal(t, []string{"results", "w2", "--follow"}, env)
	s.await("cancelled")
	s.interrupt()
	if out := s.exits(130); !strings.Contains(out, "umbel: detached; the work goes on. Look again with: umbel results w2") {
		t.Errorf("results said\n%s", out)
	}
}

// What users have put into names and messages reaches a terminal as text only.
func TestNothingOfUsersDrivesTheTerminal(t *testing.T) {
	t.Parallel()
	env := dev(t)
	background(t, "\x1b[31mred\u202e\n", []string{"run", "--workflow-id", "w", "--max-attempts", "1", "--", "sh", "-c", "cat >&2; exit 1"}, env).exits(1)
	for _, args := range [][]string{
		{"results", "w"}, {"results", "w", "--inputs"}, {"history", "w"}, {"show", "w"}, {"list"},
		{"results", "w", "--format", "raw"},
	} {
		if out := umbelOutput(t, "", args, env); strings.ContainsAny(out, "\x1b\u202e") {
			t.Errorf("umbel %v wrote %q", args, out)
		}
	}
}

// The first SIGTERM to a worker lets commands end, and reports them.
func TestWorkerDrains(t *testing.T) {
	t.Parallel()
	env := dev(t)
	gate := writeFile(t, "gate", "")
	script := `echo up >&2; while test -e "$1"; do sleep 0.01; done; echo done`
	w := background(t, "", []string{"worker", "--", "sh", "-c", script, "x", gate}, env)
	umbelOutput(t, "a\n", []string{"start", "--workflow-id", "w"}, env)
	w.await("[0] up")
	w.signal(syscall.SIGTERM)
	if err := os.Remove(gate); err != nil {
		t.Fatal(err)
	}
	w.exits(0)
	got := umbelOutput(t, "", []string{"results", "w", "--format", "json"}, env)
	if !strings.Contains(got, `"attempt":1,"result":"done\n"`) {
		t.Errorf("the result is %s", got)
	}
}

// The second SIGTERM ends commands that do not heed the first. Their rows go back at no cost.
func TestWorkerStopsAtOnce(t *testing.T) {
	t.Parallel()
	env := dev(t)
	w := background(t, "", []string{"worker", "--grace", "1h", "--", "sh", "-c", `trap '' TERM; echo up >&2; while :; do sleep 0.01; done`}, env)
	umbelOutput(t, "a\n", []string{"start", "--workflow-id", "w"}, env)
	w.await("[0] up")
	w.signal(syscall.SIGTERM)
	w.await("umbel: stopping; commands may run on for 1h0m0s, or until a second signal")
	w.signal(syscall.SIGTERM)
	w.exits(0)
	again := background(t, "", []string{"worker", "--", "sh", "-c", `echo "attempt $UMBEL_ATTEMPT" >&2`}, env)
	again.await("[0] attempt 1")
}

// A Redis that somebody ends takes its server along, which says so.
func TestDevWithoutItsRedis(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s := background(t, "", []string{"dev", "--data", data, "--listen", "127.0.0.1:0"})
	s.await("serving on http://")
	endRedis(t, data)
	if out := s.exits(1); !strings.Contains(out, "umbel: redis-server in "+data+" has ended (exit status 0)") {
		t.Errorf("it said\n%s", out)
	}
}

// endRedis ends the redis-server that keeps its data in a directory.
func endRedis(t *testing.T, data string) {
	t.Helper()
	socket, err := os.ReadFile(filepath.Join(data, "socket.path"))
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(&redis.Options{Network: "unix", Addr: string(socket), MaxRetries: -1})
	defer c.Close()
	_ = c.ShutdownNoSave(t.Context())
}

// A server that is told to end answers what is under way, and exits with 0.
func TestServerEnds(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		s := background(t, "", []string{"dev", "--listen", "127.0.0.1:0"})
		s.await("serving on http://")
		s.signal(sig)
		s.exits(0)
	}
}

// Servers work on a Redis that runs elsewhere; those with another prefix do not meet.
func TestServerOnARedis(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	first := dev(t, "--data", data)
	umbelOutput(t, "a\n", []string{"start", "--workflow-id", "w"}, first)
	socket, err := os.ReadFile(filepath.Join(data, "socket.path"))
	if err != nil {
		t.Fatal(err)
	}
	url := "unix://" + string(socket)
	for _, tc := range []struct {
		args []string
		sees bool
	}{
		{[]string{"server", "--redis", url, "--log-format", "json"}, true},
		{[]string{"dev", "--redis", url}, true},
		{[]string{"server", "--redis", url, "--prefix", "other", "--lease", "2s"}, false},
	} {
		s := background(t, "", append(tc.args, "--listen", "127.0.0.1:0"))
		env := servesAt(s)
		if got := umbelOutput(t, "", []string{"list", "--format", "json"}, env); strings.Contains(got, `"w"`) != tc.sees {
			t.Errorf("umbel %v lists %q", tc.args, got)
		}
		s.signal(syscall.SIGTERM)
		if out := s.exits(0); strings.Index(out, "every acknowledged start and result survives a power cut") > strings.Index(out, "umbel: serving on") {
			t.Errorf("umbel %v says too late how durable it is:\n%s", tc.args, out)
		}
	}
}

// What is only in memory cannot go on.
func TestRunInMemoryIsInterrupted(t *testing.T) {
	t.Parallel()
	s := background(t, "a\nb\n", []string{"run", "-j", "1", "--", "sh", "-c", "echo up >&2; exec sleep 600"}, "UMBEL_ADDR=")
	s.await("[0] up")
	s.signal(syscall.SIGINT)
	if out := s.exits(130); !strings.Contains(out, "umbel: interrupted; a run with --data and --workflow-id can go on later") {
		t.Errorf("it said\n%s", out)
	}
}

// Ctrl-C ends a run and its commands. What is named goes on; what nobody can go on with is cancelled.
func TestRunIsInterrupted(t *testing.T) {
	t.Parallel()
	env := dev(t)
	items := writeFile(t, "items", "a\nb\n")
	run := func(flags string) string {
		t.Helper()
		s := terminalShell(t, "umbel run "+flags+" -- sh -c 'echo up >&2; exec sleep 600' < "+items, env)
		s.await("[0] up")
		s.interrupt()
		return s.exits(130)
	}
	if out := run(""); !strings.Contains(out, "umbel: interrupted; what was left is cancelled. A run with --workflow-id can go on later") {
		t.Errorf("a run without a name said\n%s", out)
	}
	if got := umbelOutput(t, "", []string{"list", "--status", "cancelled", "--format", "json"}, env); strings.Count(got, "\n") != 1 {
		t.Errorf("cancelled runs:\n%s", got)
	}
	if out := run("--workflow-id w"); !strings.Contains(out, "umbel: interrupted; the same command goes on where it was") {
		t.Errorf("a run with a name said\n%s", out)
	}
	got := umbelOutput(t, "a\nb\n", []string{"run", "--workflow-id", "w", "-k", "--", "sh", "-c", `echo "$UMBEL_ATTEMPT"`}, env)
	if got != "1\n1\n" {
		t.Errorf("run again it prints %q: the interruption cost an attempt", got)
	}
}
