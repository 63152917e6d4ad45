//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A run that is killed halfway and run again prints what it would have printed, and runs nothing twice that was
// done.
func TestRunGoesOnAfterKill(t *testing.T) {
	t.Parallel()
	const n, slots = 300, 4
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	// Who has its line in the log is through: the result is written before it.
	script := `sleep 0.01; sha256sum "$1"; echo "$1" >> ` + log
	items := filesIn(t, dir, n)
	args := []string{"run", "--data", filepath.Join(dir, "data"), "--workflow-id", "w", "-j", fmt.Sprint(slots), "-k", "--", "sh", "-c", script, "x", "{}"}

	for _, done := range []int{n / 4, n / 2} {
		s := background(t, items, args)
		awaitLines(t, log, done)
		if err := s.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = s.cmd.Wait()
	}
	got := umbelOutput(t, items, args)

	xargs := exec.Command("xargs", "-d", `\n`, "-n1", "sha256sum")
	xargs.Stdin = strings.NewReader(items)
	want, err := xargs.Output()
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("it prints %d bytes, xargs %d:\n%.300s", len(got), len(want), got)
	}
	// What ran twice was in flight when the process was killed: of two kills, twice the slots at most.
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	slices.Sort(lines)
	distinct := len(slices.Compact(slices.Clone(lines)))
	if distinct != n || len(lines) > n+2*slots {
		t.Errorf("%d items ran %d times, %d of them", n, len(lines), distinct)
	}
	// Run again, it prints the same and runs nothing.
	if again := umbelOutput(t, items, args); again != got {
		t.Error("run again it prints something else")
	}
	if after, _ := os.ReadFile(log); len(after) != len(b) {
		t.Error("run again it ran something")
	}
}

func filesIn(t *testing.T, dir string, n int) (items string) {
	t.Helper()
	var b strings.Builder
	for i := range n {
		path := filepath.Join(dir, fmt.Sprintf("file %d", i))
		if err := os.WriteFile(path, []byte(path), 0o600); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&b, path)
	}
	return b.String()
}

// awaitLines returns once a file has n lines.
func awaitLines(t *testing.T, path string, n int) {
	t.Helper()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for {
		b, err := os.ReadFile(path)
		if err == nil && strings.Count(string(b), "\n") >= n {
			return
		}
		select {
		case <-poll.C:
		case <-t.Context().Done():
			t.Fatal("the file did not grow")
		}
	}
}
