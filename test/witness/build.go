package witness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Build builds a program of this module, sets path to it, runs the tests of m and returns their exit code; the program goes
// with them. args are those of `go build`: flags, then the package.
func Build(m *testing.M, path *string, args ...string) int {
	code, err := build(m, path, args)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func build(m *testing.M, path *string, args []string) (int, error) {
	dir, err := os.MkdirTemp("", "umbel-test-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	*path = filepath.Join(dir, "program")
	if out, err := exec.Command("go", append([]string{"build", "-o", *path}, args...)...).CombinedOutput(); err != nil { //nolint:gosec,noctx // the tests say what to build, and none has begun whose context it could be
		return 0, fmt.Errorf("go build %v: %w\n%s", args, err, out)
	}
	return m.Run(), nil
}
