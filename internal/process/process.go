// Package process runs programs in process groups of their own: what a terminal sends on Ctrl-C does not reach
// them, a signal reaches all of what they start, and on Linux they do not outlive this process, however it ends.
package process

import (
	"os/exec"
	"runtime"
	"syscall"
)

// Process is a program that was started by [Start].
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// Start starts cmd in a new process group. On Linux it is sent orphaned when this process dies, even by kill -9;
// what it has started itself is not. The error is that of [exec.Cmd.Start].
//
// cmd must not be waited for by the caller; see [Process.Done].
func Start(cmd *exec.Cmd, orphaned syscall.Signal) (*Process, error) {
	attach(cmd, orphaned)
	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel sends the signal when the thread ends that started the program. This one waits with it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// Done is closed once the program has ended and has been waited for.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err is what [exec.Cmd.Wait] returned. It is meaningful once [Process.Done] is closed.
func (p *Process) Err() error { return p.err }

// PID is the program's process ID, which is that of its group too.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends sig to the whole group. Where there are no groups, the program alone is killed.
func (p *Process) Signal(sig syscall.Signal) { signal(p.cmd, sig) }
