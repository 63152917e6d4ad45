package testredis_test

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testredis"
)

const dieVar = "UMBEL_TESTREDIS_DIE"

// TestDies is no test of its own: TestNothingOutlivesTheBinary runs it in a
// second process, which it kills in the middle of everything.
func TestDies(t *testing.T) {
	if os.Getenv(dieVar) == "" {
		return
	}
	for _, r := range []*testredis.Redis{testredis.Shared(t), testredis.Real(t)} {
		fmt.Println("started", r.Addr, r.Dir())
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	t.Fatal(self.Kill())
}

func TestNothingOutlivesTheBinary(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDies$")
	cmd.Env = append(os.Environ(), dieVar+"=1")
	out, err := cmd.Output()
	if err == nil {
		t.Fatal("the second process was to be killed")
	}
	started := 0
	for line := range strings.Lines(string(out)) {
		var addr, dir string
		if _, err := fmt.Sscanf(line, "started %s %s\n", &addr, &dir); err != nil {
			continue
		}
		started++
		eventually(t, addr+" is down", func() bool {
			conn, err := net.Dial("tcp", addr)
			if err == nil {
				_ = conn.Close()
			}
			return err != nil
		})
		eventually(t, dir+" is gone", func() bool {
			_, err := os.Stat(dir)
			return os.IsNotExist(err)
		})
	}
	if started != 2 {
		t.Errorf("saw %d servers start, want 2:\n%s", started, out)
	}
}

func TestRealCleansUp(t *testing.T) {
	t.Parallel()
	var dir string
	t.Run("use", func(t *testing.T) { dir = testredis.Real(t).Dir() })
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v; want %v", dir, err, fs.ErrNotExist)
	}
}

// eventually waits for what another process does.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for range 1000 {
		if ok() {
			return
		}
		<-poll.C
	}
	t.Errorf("it never came true that %s", what)
}
