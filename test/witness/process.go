package witness

import (
	"bytes"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Process is a program that runs, and may be killed.
type Process struct {
	Cmd            *exec.Cmd
	Stdout, Stderr Output
	Gone           chan struct{} // closed once it has ended
	Err            error         // how, then
}

// Start starts a program. It is killed when the test ends.
func Start(t *testing.T, cmd *exec.Cmd) *Process {
	t.Helper()
	p := &Process{Cmd: cmd, Gone: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.Stdout, &p.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.Err = cmd.Wait()
		close(p.Gone)
	}()
	t.Cleanup(p.Kill)
	return p
}

// Patience is how long a test waits for what must come: more than any of them takes, even on a busy machine.
const Patience = 3 * time.Minute

// Kill ends it as kill -9 does, and waits until it is gone.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	<-p.Gone
}

// Signal sends it a signal; it is no error if it is gone.
func (p *Process) Signal(s syscall.Signal) { _ = p.Cmd.Process.Signal(s) }

// Stop asks it to end as an operator does, and fails the test unless it does so and all went well.
func (p *Process) Stop(t *testing.T) {
	t.Helper()
	p.Signal(syscall.SIGTERM)
	p.Ended(t)
}

// Ended waits for the program to end by itself, and fails the test unless all went well.
func (p *Process) Ended(t *testing.T) {
	t.Helper()
	select {
	case <-p.Gone:
	case <-time.After(Patience):
		t.Fatalf("%s does not end; it said\n%s", p.Cmd.Path, Tail(p.Stderr.String()))
	}
	if p.Err != nil {
		t.Fatalf("%s ended with %v and said\n%s", p.Cmd.Path, p.Err, Tail(p.Stderr.String()))
	}
}

// Output is what a program has written so far. It may be read while the program runs.
type Output struct {
	mu  sync.Mutex
	all bytes.Buffer
}

// Write adds to it.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.Write(p)
}

// String is all of it.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.String()
}

// Tail is the end of what a program said.
func Tail(s string) string {
	const most = 40
	lines := strings.Split(s, "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}
