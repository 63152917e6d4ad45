package examples_test

import (
	"bytes"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// onTerminal runs cmd after set has put a terminal where it wants one, and returns all that came out of it.
func onTerminal(t *testing.T, cmd *exec.Cmd, set func(tty io.Writer)) string {
	t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	if err := pty.Setsize(tty, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		t.Fatal(err)
	}
	set(tty)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = tty.Close() // the program has its own; once that is gone, reading ends
	seen, _ := io.ReadAll(master)
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, seen)
	}
	return string(seen)
}

func TestChecksumDrawsOnATerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plant(t, dir, map[string]string{"a": "1", "b": "2", "c": "3"})
	want := sha256sum(t, dir, dir+"/a", dir+"/b", dir+"/c")

	t.Run("stderr", func(t *testing.T) {
		t.Parallel()
		var stdout bytes.Buffer
		cmd := program(t, "checksum", dir)
		cmd.Stdout = &stdout
		seen := onTerminal(t, cmd, func(tty io.Writer) { cmd.Stderr = tty })
		if !strings.Contains(seen, "hashing") || !strings.Contains(seen, "/3") || !strings.Contains(seen, "%") {
			t.Errorf("no progress bar in %q", seen)
		}
		sameLines(t, stdout.String(), want)
	})
	t.Run("all of it", func(t *testing.T) {
		t.Parallel()
		cmd := program(t, "checksum", dir)
		seen := onTerminal(t, cmd, func(tty io.Writer) { cmd.Stdout, cmd.Stderr = tty, tty })
		bar, lines, ok := strings.Cut(seen, "\r"+want[:10])
		if !ok || !strings.Contains(bar, "hashing") {
			t.Errorf("no bar that makes room for the sums in %q", seen)
		}
		sameLines(t, strings.ReplaceAll(want[:10]+lines, "\r\n", "\n"), want)
	})
	t.Run("stdout alone", func(t *testing.T) {
		t.Parallel()
		var stderr bytes.Buffer
		cmd := program(t, "checksum", dir)
		cmd.Stderr = &stderr
		seen := onTerminal(t, cmd, func(tty io.Writer) { cmd.Stdout = tty })
		sameLines(t, strings.ReplaceAll(seen, "\r\n", "\n"), want)
		if stderr.Len() > 0 {
			t.Errorf("stderr is no terminal and has %q", stderr.String())
		}
	})
}

func TestChecksumWritesNoEscapeIntoAPipe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plant(t, dir, map[string]string{"a": "1", "b": "2", "c": "3"})
	for _, args := range [][]string{{dir}, {dir + "/absent"}, {}} {
		if got := run(t, "checksum", args...); strings.ContainsAny(got.stdout+got.stderr, "\x1b\r") {
			t.Errorf("checksum %q: an escape or a carriage return in %+v", args, got)
		}
	}
}
