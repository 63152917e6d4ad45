package examples_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/test/witness"
)

// fanout runs the shell script with some lines of input.
func fanout(t *testing.T, addr, lines string, args ...string) ran {
	t.Helper()
	witness.Program(t, "curl")
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "curl/fanout.sh", args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(lines), &stdout, &stderr
	cmd.Env = append(os.Environ(), "UMBEL_URL=http://"+addr, "no_proxy=*")
	_ = cmd.Run()
	return ran{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

func TestCurlFanOut(t *testing.T) {
	t.Parallel()
	addr, admin := serve(t, longLease)
	for range 2 { // the second run attaches
		got := fanout(t, addr, "one\n\"two\" \\\nthrée\n", "w", "sed", "s/$/!/")
		if want := (ran{stdout: "one!\"two\" \\!thrée!"}); strings.ReplaceAll(got.stdout, "\n", "") != want.stdout || got.code != 0 || got.stderr != "" {
			t.Errorf("fanout.sh: %+v, want %+v", got, want)
		}
	}
	for i, r := range outcomes(t, admin, "w") {
		if r.Attempt != 1 {
			t.Errorf("result %d is of attempt %d", i, r.Attempt)
		}
	}
}

func TestCurlFailsAndRetries(t *testing.T) {
	t.Parallel()
	addr, admin := serve(t, longLease)
	begun := t.TempDir()
	got := fanout(t, addr, "once\nnever\n", "w", "sh", "-c", `read -r line || :
		if [ "$line" = never ] || mkdir "$0/$line"; then exit 7; fi 2>/dev/null
		echo done`, begun)
	if got.stdout != "done\n" || got.code != 1 || !strings.Contains(got.stderr, "a row failed: the command exited with 7") {
		t.Errorf("fanout.sh: %+v", got)
	}
	if all := outcomes(t, admin, "w"); all[0].Attempt != 2 || all[1].Attempt != 3 {
		t.Errorf("attempts %d and %d, want 2 and 3", all[0].Attempt, all[1].Attempt)
	}
}

// A row whose command takes longer than a lease stays the script's.
func TestCurlRenews(t *testing.T) {
	t.Parallel()
	addr, admin := serve(t, shortLease)
	if got := fanout(t, addr, "x", "w", "sh", "-c", "sleep 6; cat"); got.stdout != "x" || got.code != 0 {
		t.Errorf("fanout.sh: %+v", got)
	}
	if r := outcomes(t, admin, "w")[0]; r.Attempt != 1 {
		t.Errorf("attempt %d, want the first", r.Attempt)
	}
}

// Who interrupts the script finds the row given back.
func TestCurlReleasesOnStop(t *testing.T) {
	t.Parallel()
	addr, admin := serve(t, longLease)
	got := fanout(t, addr, "x", "w", "sh", "-c", `kill -TERM "$PPID"; cat`)
	if got.code != 143 {
		t.Errorf("fanout.sh: %+v, want exit code 143", got)
	}
	if info, err := admin.Show(t.Context(), "w", ""); err != nil || info.Counts.Pending != 1 {
		t.Errorf("%+v, %v: want the row to wait", info.Counts, err)
	}
	if got := fanout(t, addr, "x", "w", "cat"); got.stdout != "x" || got.code != 0 {
		t.Errorf("fanout.sh again: %+v", got)
	}
	if r := outcomes(t, admin, "w")[0]; r.Attempt != 1 {
		t.Errorf("attempt %d, want the first", r.Attempt)
	}
}

func TestCurlRefuses(t *testing.T) {
	t.Parallel()
	addr, admin := serve(t, longLease)
	start(t, admin, client.StartSpec{WorkflowID: "w"}, "x")
	for _, tc := range []struct {
		args []string
		code int
		says string
	}{
		{nil, 2, "usage:"},
		{[]string{"a b", "cat"}, 2, "workflow ID"},
		{[]string{"w", "cat"}, 1, "already_exists"},
	} {
		if got := fanout(t, addr, "y\n", tc.args...); got.code != tc.code || !strings.Contains(got.stderr, tc.says) {
			t.Errorf("fanout.sh %q: %+v, want exit code %d and %q", tc.args, got, tc.code, tc.says)
		}
	}
}
