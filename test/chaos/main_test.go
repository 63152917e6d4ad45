package chaos_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// umbel is the binary.
var umbel string

func TestMain(m *testing.M) {
	if addr := os.Getenv(roleVar); addr != "" {
		fmt.Fprintln(os.Stderr, takePills(addr))
		os.Exit(2)
	}
	code, err := build(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func build(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "umbel-chaos-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	umbel = filepath.Join(dir, "umbel")
	if out, err := exec.Command("go", "build", "-o", umbel, "../../cmd/umbel").CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build umbel: %w\n%s", err, out)
	}
	return m.Run(), nil
}
