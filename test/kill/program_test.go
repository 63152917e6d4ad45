package kill_test

import (
	"bytes"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// process is a program that runs, and may be killed.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
	gone           chan struct{} // closed once it has ended
	err            error         // how, then
}

// start starts a program. It is killed when the test ends.
func start(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd, gone: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.stdout, &p.stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = cmd.Wait()
		close(p.gone)
	}()
	t.Cleanup(p.kill)
	return p
}

// kill ends it as kill -9 does, and waits until it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL) // fails only when it is gone already
	<-p.gone
}

// ended waits for the program to end by itself, and fails the test unless all went well.
func (p *process) ended(t *testing.T) {
	t.Helper()
	select {
	case <-p.gone:
	case <-t.Context().Done():
		t.Fatal("the program does not end")
	}
	if p.err != nil {
		t.Fatalf("%s ended with %v and said\n%s", p.cmd.Path, p.err, tail(p.stderr.String()))
	}
}

// tail is the end of what a program said.
func tail(s string) string {
	const most = 40
	lines := strings.Split(s, "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}
