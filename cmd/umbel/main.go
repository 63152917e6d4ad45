// Umbel is the one binary: a server, a worker that runs commands, and the tools around them. `umbel --help` shows
// its commands, docs/cli.md explains them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	redislog "github.com/redis/go-redis/v9/logging"

	"github.com/umbelhq/umbel"
)

// Exit codes.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitUnreachable = 3 // not found or unreachable
	exitInterrupted = 130
)

func main() {
	collectLess()
	redislog.Disable() // go-redis would write lines of its own; what matters comes back as an error
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the program, with its exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, signals := notify(context.Background())
	defer signals.stop()
	a := &app{signals: signals}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	code := exitCode(err)
	switch {
	case !a.started: // what was wrong is the command line
		code = exitUsage
	case ctx.Err() != nil && code != exitUsage:
		code = exitInterrupted
	}
	if code != exitInterrupted || isHint(err) { // else the person knows
		fmt.Fprintln(stderr, "umbel: "+safeText(message(err)))
	}
	return code
}

// usageError is what is wrong with the command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{err: fmt.Errorf(format, args...)} }

// hintError replaces an error's text by what to do.
type hintError struct {
	text string
	err  error
}

func (e *hintError) Error() string { return e.text }
func (e *hintError) Unwrap() error { return e.err }

func isHint(err error) bool {
	_, ok := errors.AsType[*hintError](err)
	return ok
}

func exitCode(err error) int {
	if _, ok := errors.AsType[*usageError](err); ok {
		return exitUsage
	}
	switch umbel.CodeOf(err) {
	case umbel.CodeInvalid, umbel.CodeLimit:
		return exitUsage
	case umbel.CodeNotFound, umbel.CodeUnavailable:
		return exitUnreachable
	default:
		return exitFailed
	}
}
