package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/process"
)

// attempt is a command that runs.
type attempt struct {
	command *command
	prefix  string // of its lines on standard error
	child   *process.Process

	outPipe, errPipe *os.File
	read             chan struct{} // closed once both pipes are read to their end
	overrun          chan struct{} // closed once there is more output than a result may have

	// What follows is there once read is closed.
	out      []byte
	overflow bool
	tail     *tail
}

// startAgain is the time between two tries to start a program on a machine that has no room for it.
const startAgain = 100 * time.Millisecond

// start starts the program and begins to read what it writes. A machine that is short of processes, files or memory
// is no fault of the row: start waits with it, so that no other comes here instead and fails at once, and tries
// again until ctx ends.
func (a *attempt) start(ctx context.Context, args, env []string, input []byte) (*exec.Cmd, error) {
	c := a.command
	for {
		cmd := &exec.Cmd{Path: c.path, Args: args, Env: env, Stdin: bytes.NewReader(input), WaitDelay: linger}
		err := a.tryStart(cmd)
		if !noRoom(err) {
			return cmd, err
		}
		c.short.Do(func() {
			_, _ = fmt.Fprintf(c.stderr, "umbel: no room for so many commands at once, waiting for some to end: %v\n", err) // a hint
		})
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(startAgain):
		}
	}
}

// noRoom reports whether a program may well start later, unchanged. EBADF is what a child says whose files, moved out
// of each other's way, would get numbers above the limit.
func noRoom(err error) bool {
	lacks := []error{syscall.EMFILE, syscall.ENFILE, syscall.EBADF, syscall.EAGAIN, syscall.ENOMEM}
	return slices.ContainsFunc(lacks, func(short error) bool {
		return errors.Is(err, short)
	})
}

func (a *attempt) tryStart(cmd *exec.Cmd) error {
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		return err
	}
	errRead, errWrite, err := os.Pipe()
	if err != nil {
		_, _ = outRead.Close(), outWrite.Close()
		return err
	}
	cmd.Stdout, cmd.Stderr = outWrite, errWrite
	a.child, err = process.Start(cmd, syscall.SIGKILL)
	_, _ = outWrite.Close(), errWrite.Close() // the child has its own
	if err != nil {
		_, _ = outRead.Close(), errRead.Close()
		return err
	}
	a.outPipe, a.errPipe = outRead, errRead
	a.read, a.overrun = make(chan struct{}), make(chan struct{})
	errDone := make(chan struct{})
	go func() {
		defer close(errDone)
		defer func() { _ = errRead.Close() }()
		a.passOn(errRead)
	}()
	go func() {
		defer close(a.read)
		most := a.command.mostOutput()
		a.out, _ = io.ReadAll(io.LimitReader(outRead, most+1))
		if a.overflow = int64(len(a.out)) > most; a.overflow {
			close(a.overrun)
		}
		_ = outRead.Close() // what comes now, nobody wants
		<-errDone
	}()
	return nil
}

// wait returns once the program has ended and its pipes are closed, or have been open for long enough afterwards.
// told is set if it was told to end.
func (a *attempt) wait(ctx context.Context) (told bool) {
	c := a.command
	exited, read, ended, overrun, hurry := a.child.Done(), a.read, ctx.Done(), a.overrun, c.hurry
	var kill, lingered <-chan time.Time
	end := func() {
		if told {
			return
		}
		told = true
		ended, overrun, lingered = nil, nil, nil
		a.child.Signal(syscall.SIGTERM)
		grace := c.grace
		if errors.Is(context.Cause(ctx), umbel.ErrWorkerStopping) {
			grace = min(grace, stopGrace)
		}
		kill = time.After(grace)
	}
	for exited != nil || read != nil {
		select {
		case <-exited:
			exited = nil
			if !told {
				lingered = time.After(linger)
			}
		case <-read:
			read = nil
		case <-ended:
			end()
		case <-overrun:
			end()
		case <-hurry:
			hurry, kill, told = nil, nil, true
			a.child.Signal(syscall.SIGKILL)
			lingered = time.After(linger)
			<-ctx.Done() // it ends now, too, and says what becomes of the row
		case <-kill:
			kill = nil
			a.child.Signal(syscall.SIGKILL) // also to those that still hold the pipes
			lingered = time.After(linger)
		case <-lingered:
			lingered = nil
			_ = a.outPipe.SetReadDeadline(time.Unix(1, 0))
			_ = a.errPipe.SetReadDeadline(time.Unix(1, 0))
		}
	}
	return told
}
