package kill_test

import (
	"bytes"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a program that runs, and may be killed.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr output
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

// patience is how long a test waits for what must come: more than any of them takes, even on a busy machine.
const patience = 3 * time.Minute

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
	case <-time.After(patience):
		t.Fatalf("%s does not end; it said\n%s", p.cmd.Path, tail(p.stderr.String()))
	}
	if p.err != nil {
		t.Fatalf("%s ended with %v and said\n%s", p.cmd.Path, p.err, tail(p.stderr.String()))
	}
}

// output is what a program has written so far. It may be read while the program runs.
type output struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.String()
}

// tail is the end of what a program said.
func tail(s string) string {
	const most = 40
	lines := strings.Split(s, "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}
