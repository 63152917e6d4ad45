package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/worker"
)

const (
	placeholder = "{}"
	// maxArgInput is what Linux takes as one argument.
	maxArgInput = 128 << 10
	// linger is how long a command's pipes may stay open after its end, held by what it has started.
	linger = 2 * time.Second
	// stopGrace bounds the grace of commands that a stopping worker ends: the worker leaves handlers behind after
	// five seconds.
	stopGrace = 4 * time.Second
)

// command is a program that runs once for each row: the input on its standard input, the result on its standard
// output.
type command struct {
	path    string
	args    []string      // with the program's name first
	trim    bool          // drop one newline at the end of the result
	noRetry []int         // exit codes that fail the row for good
	grace   time.Duration // between SIGTERM and SIGKILL
	timeout time.Duration // of one attempt, 0: none but the row's own
	stderr  io.Writer     // each Write is a whole line
	hurry   <-chan struct{}
	short   sync.Once // says that this machine is short of something
}

// handle is the umbel.Handler.
func (c *command) handle(ctx context.Context, in umbel.Payload) (umbel.Payload, error) {
	return c.run(ctx, worker.Info(ctx), in)
}

// run is one attempt. A command that was told to end has no result, whatever it exits with: it may be half of one.
func (c *command) run(ctx context.Context, info umbel.Info, in umbel.Payload) (umbel.Payload, error) {
	args, err := c.fill(in.Data)
	if err != nil {
		return umbel.Payload{}, umbel.NonRetryable(umbel.Typed(umbel.FailureInvalidInput, err))
	}
	if c.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.timeout, errTimeout)
		defer cancel()
	}
	if ctx.Err() != nil {
		return umbel.Payload{}, c.interrupted(ctx)
	}
	a := attempt{command: c, tail: newTail(), prefix: "[" + strconv.FormatInt(info.Ordinal, 10) + "] "}
	cmd, err := a.start(ctx, args, environment(info), in.Data)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return umbel.Payload{}, c.interrupted(ctx)
	case errors.Is(err, syscall.E2BIG):
		return umbel.Payload{}, umbel.NonRetryable(umbel.Typed(umbel.FailureInvalidInput, err))
	default:
		return umbel.Payload{}, umbel.Typed("exec", err)
	}
	told := a.wait(ctx)
	switch {
	case a.overflow:
		return umbel.Payload{}, umbel.NonRetryable(umbel.Typed(umbel.FailureInvalidResult, umbel.Limit("result", c.mostOutput()+1, "payload bytes", umbel.MaxPayloadBytes)))
	case told && ctx.Err() != nil:
		return umbel.Payload{}, c.interrupted(ctx)
	case !cmd.ProcessState.Success():
		return umbel.Payload{}, c.failed(cmd.ProcessState, a.tail.String())
	}
	return c.result(a.out), nil
}

var errTimeout = errors.New("--timeout exceeded")

// interrupted is the failure of a command whose context ended. The worker reports it for --timeout only; else it
// knows better what became of the row.
func (c *command) interrupted(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, errTimeout) {
		return umbel.Typed(umbel.FailureTimedOut, fmt.Errorf("--timeout of %v exceeded", c.timeout))
	}
	return cause
}

// fill puts the input where the arguments ask for it.
func (c *command) fill(input []byte) ([]string, error) {
	args := slices.Clone(c.args)
	for i, arg := range args {
		if i == 0 || !strings.Contains(arg, placeholder) {
			continue
		}
		if bytes.IndexByte(input, 0) >= 0 {
			return nil, errors.New("the input holds a NUL byte, which no argument can: leave {} out and read it from standard input")
		}
		if len(input) > maxArgInput {
			return nil, fmt.Errorf("the input has %d bytes, more than the %d that an argument can hold: leave {} out and read it from standard input",
				len(input), maxArgInput)
		}
		args[i] = strings.ReplaceAll(arg, placeholder, string(input))
	}
	return args, nil
}

// environment is this process's with what tells the command which row it runs.
func environment(info umbel.Info) []string {
	return append(os.Environ(),
		"UMBEL_WORKFLOW_ID="+string(info.WorkflowID),
		"UMBEL_RUN_ID="+string(info.RunID),
		"UMBEL_ORDINAL="+strconv.FormatInt(info.Ordinal, 10),
		"UMBEL_ATTEMPT="+strconv.Itoa(info.Attempt),
		"UMBEL_DISPATCH_KEY="+info.DispatchKey,
		"UMBEL_IDEMPOTENCY_KEY="+info.IdempotencyKey,
	)
}

// failed is the failure of a command that ended otherwise than with 0: the end of what it wrote to standard error.
func (c *command) failed(state *os.ProcessState, stderr string) error {
	code := state.ExitCode()
	kind := "exit " + strconv.Itoa(code)
	if code < 0 { // "signal: killed"
		kind = strings.Replace(strings.TrimSuffix(state.String(), " (core dumped)"), ": ", " ", 1)
	}
	if stderr == "" {
		stderr = c.args[0] + ": " + kind
	}
	err := umbel.Typed(kind, errors.New(stderr))
	if slices.Contains(c.noRetry, code) {
		return umbel.NonRetryable(err)
	}
	return err
}

func (c *command) result(out []byte) umbel.Payload {
	if c.trim {
		out = bytes.TrimSuffix(out, []byte("\n"))
	}
	contentType := contentTypeText
	if !utf8.Valid(out) {
		contentType = contentTypeBytes
	}
	return umbel.Payload{ContentType: contentType, Data: out}
}

// mostOutput is how many bytes a command may write that are a result.
func (c *command) mostOutput() int64 {
	if c.trim {
		return umbel.MaxPayloadBytes + 1
	}
	return umbel.MaxPayloadBytes
}
