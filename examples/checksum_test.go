package examples_test

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testredis"
)

// sha256sum returns what sha256sum prints for paths, and fails the test if it could not read one.
func sha256sum(t *testing.T, dir string, paths ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sha256sum", paths...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("sha256sum: %v\n%s", err, out)
	}
	return string(out)
}

// plant makes files under dir, by name, and the directories above them.
func plant(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := dir + "/" + name
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// sameLines fails at the first line that differs.
func sameLines(t *testing.T, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	g, w := strings.SplitAfter(got, "\n"), strings.SplitAfter(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			t.Fatalf("line %d of %d is\n%q, want\n%q", i+1, len(g), g[i], w[i])
		}
	}
	t.Fatalf("%d lines, want %d", len(g), len(w))
}

// What the README promises to show first: about eleven thousand real files.
func TestChecksumOfTheGoSources(t *testing.T) {
	t.Parallel()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	src := filepath.Join(strings.TrimSpace(string(root)), "src")
	want, err := exec.CommandContext(t.Context(), "sh", "-c",
		`find "$1" -type f -exec sha256sum {} + | LC_ALL=C sort -k2`, "sh", src).Output()
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(want, []byte("\n")); n < 5_000 {
		t.Fatalf("%s has %d files only", src, n)
	}
	got := run(t, "checksum", src)
	if got.code != 0 || got.stderr != "" {
		t.Errorf("checksum exited with %d and said %q", got.code, got.stderr)
	}
	sameLines(t, got.stdout, string(want))
}

func TestChecksumOfOddNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := map[string]string{
		"plain": "plain", "empty": "", "with space": "1", " leads": "2", "trails ": "3", "-dash": "4",
		"new\nline": "5", `back\slash`: "6", "both\n\\": "7", "tab\t": "8", "bell\a\x1b[31m": "9",
		"not\xff\xfeUTF-8": "10", "é": "11", "a.b": "12", "a/b": "13", "a/b.c": "14", "a-b/c": "15",
		"deep/er/and/deeper": "16", `"quoted"`: "17", "{x}:*": "18", strings.Repeat("long", 63): "19",
	}
	plant(t, dir, files)
	// find -type f leaves these out.
	for name, plant := range map[string]func(string) error{
		"link":     func(path string) error { return os.Symlink("plain", path) },
		"loop":     func(path string) error { return os.Symlink(".", path) },
		"fifo":     func(path string) error { return syscall.Mkfifo(path, 0o644) },
		"emptydir": func(path string) error { return os.Mkdir(path, 0o755) },
	} {
		if err := plant(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct{ name, given, prefix string }{
		{"absolute", dir, dir + "/"},
		{"slashes", dir + "//", dir + "//"},
		{"here", ".", "./"},
		{"below", "./a/../a", "./a/../a/"},
		{"a file", dir + "/plain", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var paths []string
			for name := range files {
				if rest, ok := strings.CutPrefix(name, "a/"); tc.name == "below" && ok {
					paths = append(paths, tc.prefix+rest)
				} else if tc.name != "below" && tc.prefix != "" {
					paths = append(paths, tc.prefix+name)
				}
			}
			if tc.prefix == "" {
				paths = []string{tc.given}
			}
			slices.SortFunc(paths, cmp.Compare[string])
			got := runIn(t, dir, "checksum", tc.given)
			if got.code != 0 || got.stderr != "" {
				t.Errorf("checksum exited with %d and said %q", got.code, got.stderr)
			}
			sameLines(t, got.stdout, sha256sum(t, dir, paths...))
		})
	}
}

func TestChecksumOfNothing(t *testing.T) {
	t.Parallel()
	if got := run(t, "checksum", t.TempDir()); got != (ran{}) {
		t.Errorf("checksum of an empty directory: %+v", got)
	}
}

// A file that cannot be read is named, the others are printed, and the exit code says that something is missing.
// The name is longer than open takes: unlike a mode, that stops root too.
func TestChecksumNamesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plant(t, dir, map[string]string{"a": "1", "z": "2"})
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	const pathMax, nameMax = 4096, 255
	deep := strings.Repeat("d", nameMax/2)
	path := dir
	room := func() int { return pathMax - len("/") - len("/") - 1 - len(path) }
	for room() > nameMax {
		if err := root.Mkdir(deep, 0o755); err != nil {
			t.Fatal(err)
		}
		below, err := root.OpenRoot(deep)
		if err != nil {
			t.Fatal(err)
		}
		_ = root.Close()
		root, path = below, path+"/"+deep
	}
	defer root.Close()
	last := strings.Repeat("d", room()) // a directory that can be listed, and no room for its files
	if err := root.Mkdir(last, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := root.WriteFile(last+"/unreadable", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	got := run(t, "checksum", dir)
	if got.code != 1 {
		t.Errorf("exit code %d, want 1", got.code)
	}
	if !strings.Contains(got.stderr, `/unreadable": file name too long`) || !strings.Contains(got.stderr, "1 of 3 files") {
		t.Errorf("stderr does not name the file: %.200q…%.200q", got.stderr, got.stderr[max(0, len(got.stderr)-200):])
	}
	sameLines(t, got.stdout, sha256sum(t, dir, dir+"/a", dir+"/z"))
}

func TestChecksumRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, tc := range []struct {
		args []string
		code int
		says string
	}{
		{nil, 2, "usage: checksum"},
		{[]string{dir, dir}, 2, "usage: checksum"},
		{[]string{"--no-such", dir}, 2, "no-such"},
		{[]string{dir, "--lease", "1ms"}, 1, "lease"},
		{[]string{"--redis", "no://where", dir}, 1, "--redis"},
		{[]string{dir + "/absent"}, 1, "no such file"},
	} {
		got := run(t, "checksum", tc.args...)
		if got.code != tc.code || !strings.Contains(got.stderr, tc.says) || got.stdout != "" {
			t.Errorf("%q: exit code %d, want %d; stderr %q should contain %q; stdout %q",
				tc.args, got.code, tc.code, got.stderr, tc.says, got.stdout)
		}
	}
}

// A second run under the same ID attaches to the first: it reads no file again.
func TestChecksumAttaches(t *testing.T) {
	t.Parallel()
	redis := testredis.Real(t)
	dir := t.TempDir()
	plant(t, dir, map[string]string{"a": "1", "b": "2", "c": "3"})
	args := []string{"--redis", redis.URL, "--workflow-id", "w", "--lease", "2s", dir}
	want := sha256sum(t, dir, dir+"/a", dir+"/b", dir+"/c")
	for _, what := range []string{"start", "attach"} {
		got := run(t, "checksum", args...)
		if got.code != 0 || got.stderr != "" {
			t.Errorf("%s: checksum exited with %d and said %q", what, got.code, got.stderr)
		}
		sameLines(t, got.stdout, want)
		plant(t, dir, map[string]string{"b": "changed"}) // the second run must not notice
	}
	plant(t, dir, map[string]string{"d": "new"})
	if got := run(t, "checksum", args...); got.code != 1 || !strings.Contains(got.stderr, "other inputs") {
		t.Errorf("other files under the same ID: exit code %d, %q", got.code, got.stderr)
	}
}

// Memory does not grow with what is in the files.
func TestChecksumStreamsFiles(t *testing.T) {
	t.Parallel()
	const fileBytes, mostKiB = 256 << 20, 128 << 10
	dir := t.TempDir()
	plant(t, dir, map[string]string{"large": ""})
	if err := os.Truncate(filepath.Join(dir, "large"), fileBytes); err != nil {
		t.Fatal(err)
	}
	cmd := program(t, "checksum", dir)
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	// What wait says of a process's memory counts that of its parent, too, which has started it.
	peak := 0
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for running := true; running; {
		select {
		case err := <-ended:
			if running = false; err != nil {
				t.Fatal(err)
			}
		case <-look.C:
			peak = max(peak, residentPeak(cmd.Process.Pid))
		}
	}
	sameLines(t, out.String(), sha256sum(t, dir, dir+"/large"))
	if peak == 0 || peak > mostKiB {
		t.Errorf("peak RSS of %d KiB for a file of %d KiB, want at most %d", peak, fileBytes>>10, mostKiB)
	}
}

// residentPeak is the most memory that a process has had so far, in KiB; 0 if it has ended.
func residentPeak(pid int) int {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kib := 0
	_, _ = fmt.Sscan(rest, &kib)
	return kib
}
