//go:build unix

package process_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/umbelhq/umbel/internal/process"
)

// parentVar makes the test binary a parent that starts a child and waits to be killed.
const parentVar = "UMBEL_TEST_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(parentVar) == "" {
		os.Exit(m.Run())
	}
	cmd := exec.Command("sh", "-c", "echo up; exec sleep 600")
	cmd.Stdout = os.Stdout
	p, err := process.Start(cmd, syscall.SIGKILL)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	<-p.Done()
}

// A signal reaches all of what a program has started.
func TestSignalReachesTheGroup(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sh", "-c", "sleep 600 & echo up; wait")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = w
	p, err := process.Start(cmd, syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	out := bufio.NewReader(r)
	if _, err := out.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if group, err := syscall.Getpgid(p.PID()); group != p.PID() {
		t.Errorf("the group is %d (%v), want one of its own, %d", group, err, p.PID())
	}
	p.Signal(syscall.SIGKILL)
	<-p.Done()
	if _, ok := errors.AsType[*exec.ExitError](p.Err()); !ok {
		t.Errorf("it ended with %v", p.Err())
	}
	_, _ = out.ReadByte() // returns once sleep, too, has closed it
}

func TestStartFails(t *testing.T) {
	t.Parallel()
	if _, err := process.Start(exec.Command("/no/such/program"), syscall.SIGKILL); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
