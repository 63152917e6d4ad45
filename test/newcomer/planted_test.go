package newcomer

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A README that leaves out a step, or takes a program for granted, is found out.
func TestNewcomerFindsWhatIsUnsaid(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, old, put, says string }{
		{"step", "go build ./cmd/umbel\n", "", "umbel: command not found"},
		{"program", "go build ./cmd/umbel\n", "make umbel\n", "make: command not found"},
		{"section", "## Two workers on a Redis with AOF", "## Workers", "README has no section"},
		{"clone", "git clone ", "hg clone ", "README does not say where to clone from"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if strings.Count(string(text), tc.old) != 1 {
				t.Fatalf("README has %q not once", tc.old)
			}
			dir := t.TempDir()
			readme := strings.Replace(string(text), tc.old, tc.put, 1)
			if err := os.MkdirAll(filepath.Join(dir, "docs"), 0o750); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"README.md", "docs/some.md"} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(readme), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, args := range [][]string{
				{"init", "--quiet"}, {"add", "."},
				{"-c", "user.name=n", "-c", "user.email=n@example.com", "commit", "--quiet", "--message", "planted"},
			} {
				git := exec.CommandContext(t.Context(), "git", args...)
				git.Dir = dir
				if out, err := git.CombinedOutput(); err != nil {
					t.Fatalf("git %v: %v\n%s", args, err, out)
				}
			}
			out, err := exec.CommandContext(t.Context(), "../newcomer.sh", dir).CombinedOutput()
			if err == nil || !strings.Contains(string(out), tc.says) {
				t.Errorf("newcomer.sh ended with %v and said\n%s\nwant %q", err, out, tc.says)
			}
		})
	}
}
