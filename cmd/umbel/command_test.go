package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
)

func withCause(t *testing.T) (context.Context, context.CancelCauseFunc) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	return ctx, cancel
}

// buffer is a bytes.Buffer that commands may write to while a test looks.
type buffer struct {
	mu    sync.Mutex
	b     bytes.Buffer
	wrote chan struct{}
}

func newBuffer() *buffer { return &buffer{wrote: make(chan struct{}, 1)} }

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case b.wrote <- struct{}{}:
	default:
	}
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// await returns once text was written.
func (b *buffer) await(text string) {
	for !strings.Contains(b.String(), text) {
		<-b.wrote
	}
}

// sh is a command that runs a shell script, with the arguments behind it.
func sh(script string, args ...string) *command {
	return &command{path: "/bin/sh", args: append([]string{"sh", "-c", script, "sh"}, args...), grace: time.Minute, stderr: io.Discard}
}

var someRow = umbel.Info{
	WorkflowID: "a b", RunID: "r1", Ordinal: 7, Attempt: 2, DispatchKey: "a b:7", IdempotencyKey: "a b:r1:7",
}

func runOnce(t *testing.T, c *command, input string) (string, error) {
	t.Helper()
	p, err := c.run(t.Context(), someRow, umbel.Payload{Data: []byte(input)})
	return string(p.Data), err
}

func wantFailure(t *testing.T, err error, kind, message string, nonRetryable bool) {
	t.Helper()
	f := umbel.NewFailure(err, 1)
	if f == nil || f.Type != kind || f.Message != message || f.NonRetryable != nonRetryable {
		t.Errorf("failed with %+v, want type %q, message %q, non-retryable %t", f, kind, message, nonRetryable)
	}
}

func TestCommandResult(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, script, input, want, contentType string
		trim                                   bool
	}{
		{"standard input", "cat", "in\x00put\n", "in\x00put\n", "text/plain", false},
		{"an argument", `printf %s "$1"`, "a b\n$x", "<a b\n$x>", "text/plain", false},
		{"both", `cat; printf %s "$1"`, "i", "i<i>", "text/plain", false},
		{"nothing", "true", "x", "", "text/plain", false},
		{"bytes", `printf '\377\000'`, "", "\xff\x00", "application/octet-stream", false},
		{"newlines stay", `printf 'a\n\n'`, "", "a\n\n", "text/plain", false},
		{"one newline is trimmed", `printf 'a\n\n'`, "", "a\n", "text/plain", true},
		{"input that is not read", "exec <&-; echo done", strings.Repeat("x", 100_000), "done\n", "text/plain", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := sh(tc.script, "<{}>")
			if strings.Contains(tc.input, "\x00") {
				c = sh(tc.script)
			}
			c.trim = tc.trim
			p, err := c.run(t.Context(), someRow, umbel.Payload{Data: []byte(tc.input)})
			if err != nil || string(p.Data) != tc.want || p.ContentType != tc.contentType {
				t.Errorf("the result is %q, %s (%v), want %q, %s", p.Data, p.ContentType, err, tc.want, tc.contentType)
			}
		})
	}
}

func TestCommandEnvironment(t *testing.T) {
	t.Parallel()
	got, err := runOnce(t, sh("env | grep ^UMBEL_ | grep -v TEST | sort"), "")
	want := `UMBEL_ATTEMPT=2
UMBEL_DISPATCH_KEY=a b:7
UMBEL_IDEMPOTENCY_KEY=a b:r1:7
UMBEL_ORDINAL=7
UMBEL_RUN_ID=r1
UMBEL_WORKFLOW_ID=a b
`
	if err != nil || got != want {
		t.Errorf("the environment has\n%s(%v)", got, err)
	}
}

func TestCommandFails(t *testing.T) {
	t.Parallel()
	c := sh("echo first >&2; echo last >&2; exit $1", "{}")
	c.noRetry = []int{65, 66}
	_, err := runOnce(t, c, "3")
	wantFailure(t, err, "exit 3", "first\nlast", false)
	_, err = runOnce(t, c, "66")
	wantFailure(t, err, "exit 66", "first\nlast", true)
	_, err = runOnce(t, sh("exit 75"), "") // has no meaning of its own
	wantFailure(t, err, "exit 75", "sh: exit 75", false)
	_, err = runOnce(t, sh("kill -9 $$"), "")
	wantFailure(t, err, "signal killed", "sh: signal killed", false)
	_, err = runOnce(t, sh("yes message | head -c 100000 >&2; exit 1"), "")
	if f := umbel.NewFailure(err, 1); len(f.Message) > maxTail || !strings.HasSuffix(f.Message, "message\nmessage") {
		t.Errorf("the message is %d bytes: %.100q…", len(f.Message), f.Message)
	}
	missing := &command{path: filepath.Join(t.TempDir(), "gone"), args: []string{"gone"}, stderr: io.Discard}
	if _, err := runOnce(t, missing, ""); umbel.NewFailure(err, 1).Type != "exec" || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a program that is gone: %v", err)
	}
}

func TestCommandInputsThatAreNoArguments(t *testing.T) {
	t.Parallel()
	const most = 128 << 10
	c := sh("cat >/dev/null; echo ${#1}", "{}")
	_, err := runOnce(t, c, "a\x00b")
	wantFailure(t, err, umbel.FailureInvalidInput, "the input holds a NUL byte, which no argument can: leave {} out and read it from standard input", true)
	_, err = runOnce(t, c, strings.Repeat("x", most+1))
	wantFailure(t, err, umbel.FailureInvalidInput, "the input has 131073 bytes, more than the 131072 that an argument can hold: leave {} out and read it from standard input", true)
	if got, err := runOnce(t, c, strings.Repeat("x", most-1)); got != "131071\n" {
		t.Errorf("the longest argument: %q, %v", got, err)
	}
	// One that the system refuses after all is no reason to try again.
	if _, err := runOnce(t, c, strings.Repeat("x", most)); umbel.NewFailure(err, 1).Type != umbel.FailureInvalidInput {
		t.Errorf("an argument that is too long for the system: %v", err)
	}
	// Without {} there is no such limit.
	if got, err := runOnce(t, sh("wc -c"), strings.Repeat("\x00", umbel.MaxPayloadBytes)); strings.TrimSpace(got) != "2097152" {
		t.Errorf("a large input: %q, %v", got, err)
	}
}

func TestCommandResultsHaveALimit(t *testing.T) {
	t.Parallel()
	c := sh("yes | head -c $1", "{}")
	if got, err := runOnce(t, c, "2097152"); len(got) != umbel.MaxPayloadBytes {
		t.Errorf("the largest result: %d bytes, %v", len(got), err)
	}
	// A command without end is told to end.
	_, err := runOnce(t, sh("yes"), "")
	wantFailure(t, err, umbel.FailureInvalidResult, "umbel: result 2097153 exceeds the limit of 2097152 payload bytes", true)
	c.trim = true
	if got, err := runOnce(t, c, "2097152"); len(got) != umbel.MaxPayloadBytes-1 {
		t.Errorf("a trimmed result: %d bytes, %v", len(got), err)
	}
}

func TestCommandStandardErrorIsPassedOn(t *testing.T) {
	t.Parallel()
	out := newBuffer()
	c := sh(`printf 'one\n\ntwo' >&2`)
	c.stderr = out
	if _, err := runOnce(t, c, ""); err != nil {
		t.Fatal(err)
	}
	if want := "[7] one\n[7] \n[7] two\n"; out.String() != want {
		t.Errorf("passed on %q, want %q", out.String(), want)
	}

	out = newBuffer()
	c = sh(`head -c 20000 /dev/zero | tr '\0' x >&2; echo end >&2`)
	c.stderr = out
	if _, err := runOnce(t, c, ""); err != nil {
		t.Fatal(err)
	}
	var lengths []int
	for line := range strings.Lines(out.String()) {
		lengths = append(lengths, len(strings.TrimSpace(strings.TrimPrefix(line, "[7] "))))
	}
	if !slices.Equal(lengths, []int{8192, 8192, 20000 - 2*8192 + len("end")}) {
		t.Errorf("a long line is passed on in pieces of %v", lengths)
	}
}

// A command whose context ends gets SIGTERM, with all that it has started.
func TestCommandIsTerminated(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{umbel.ErrCancelled, umbel.ErrTimedOut, umbel.ErrLeaseLost, umbel.ErrWorkerStopping} {
		ctx, cancel := withCause(t)
		out := newBuffer()
		c := sh(`trap 'wait; echo told >&2; exit 0' TERM; sh -c 'trap "echo child told >&2; exit 0" TERM; echo up >&2; while :; do sleep 0.01; done' & wait`)
		c.stderr = out
		go func() {
			out.await("up")
			cancel(cause)
		}()
		// It exits with 0, but that is half of a result.
		if _, err := c.run(ctx, someRow, umbel.Payload{}); !errors.Is(err, cause) {
			t.Errorf("%v: %v", cause, err)
		}
		if got := out.String(); !strings.Contains(got, "[7] child told\n") || !strings.Contains(got, "[7] told\n") {
			t.Errorf("%v: the group was not told: %s", cause, got)
		}
	}
}

// What does not heed SIGTERM is killed after the grace; so is a grandchild that holds the pipes when the command
// itself is gone.
func TestCommandIsKilledAfterTheGrace(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"a command":    `trap '' TERM; echo up >&2; while :; do sleep 0.01; done`,
		"a grandchild": `sh -c 'trap "" TERM; echo up >&2; while :; do sleep 0.01; done' & wait`,
	} {
		ctx, cancel := withCause(t)
		out := newBuffer()
		c := sh(script)
		c.stderr, c.grace = out, 100*time.Millisecond
		go func() {
			out.await("up")
			cancel(umbel.ErrCancelled)
		}()
		if _, err := c.run(ctx, someRow, umbel.Payload{}); !errors.Is(err, umbel.ErrCancelled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The second signal to a worker waits for no grace.
func TestCommandIsKilledInAHurry(t *testing.T) {
	t.Parallel()
	ctx, cancel := withCause(t)
	hurry := make(chan struct{})
	out := newBuffer()
	c := sh(`trap '' TERM; echo up >&2; while :; do sleep 0.01; done`)
	c.stderr, c.hurry = out, hurry
	go func() {
		out.await("up")
		close(hurry)
		cancel(umbel.ErrWorkerStopping)
	}()
	if _, err := c.run(ctx, someRow, umbel.Payload{}); !errors.Is(err, umbel.ErrWorkerStopping) {
		t.Error(err)
	}
}

func TestCommandTimeout(t *testing.T) {
	t.Parallel()
	c := sh("sleep 600")
	c.timeout = 50 * time.Millisecond
	_, err := runOnce(t, c, "")
	wantFailure(t, err, umbel.FailureTimedOut, "--timeout of 50ms exceeded", false)
}

func TestCommandContextThatHasEnded(t *testing.T) {
	t.Parallel()
	ctx, cancel := withCause(t)
	cancel(umbel.ErrWorkerStopping)
	if _, err := sh("exit 0").run(ctx, someRow, umbel.Payload{}); !errors.Is(err, umbel.ErrWorkerStopping) {
		t.Error(err)
	}
}

// A command that leaves something behind which holds its output does not hold the row.
func TestCommandLeavesSomethingBehind(t *testing.T) {
	t.Parallel()
	began := time.Now()
	pid := filepath.Join(t.TempDir(), "pid")
	got, err := runOnce(t, sh(fmt.Sprintf("sleep 20 & echo $! > %s; echo done", pid)), strings.Repeat("x", 1<<20))
	if err != nil || got != "done\n" {
		t.Errorf("the result is %q, %v", got, err)
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it took %v", took)
	}
	b, _ := os.ReadFile(pid)
	_, _ = runOnce(t, sh("kill "+strings.TrimSpace(string(b))), "")
}
