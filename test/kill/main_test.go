package kill_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// roleVar names the environment variable that makes this binary one of the programs that the tests kill.
const roleVar = "UMBEL_TEST_ROLE"

// checksum is the example program, built so that one read in fifty is slow.
var checksum string

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		if err := play(role, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, role+":", err)
			os.Exit(1)
		}
		return
	}
	code, err := build(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func build(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "umbel-kill-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	checksum = filepath.Join(dir, "checksum")
	cmd := exec.Command("go", "build", "-tags", "slowreads", "-o", checksum, "../../examples/checksum")
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build checksum: %w\n%s", err, out)
	}
	return m.Run(), nil
}
