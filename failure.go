package umbel

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Failure is a failed attempt as history and results keep it. It is an error; errors.Is and errors.As see
// through it to its Cause.
type Failure struct {
	// Type is what [Typed] said, else the Go type of the innermost error. [RetryPolicy.NonRetryable] and
	// people match on it.
	Type string
	// Message is at most [MaxErrorMessageBytes] long.
	Message string
	// Stack is that of a panic, at most [MaxErrorStackBytes].
	Stack string
	// Attempt is the attempt that failed, from 1.
	Attempt int
	// NonRetryable is set when the handler said [NonRetryable].
	NonRetryable bool
	// Cause is what the error wrapped, at most [MaxErrorCauses] deep.
	Cause *Failure
}

// Types of the failures that Umbel itself records.
const (
	// FailureLeaseExpired: the worker fell silent for a whole lease.
	FailureLeaseExpired = "LeaseExpired"
	// FailureTimedOut: the attempt took longer than its start-to-close.
	FailureTimedOut = "TimedOut"
	// FailurePanic: the handler panicked, or ended its goroutine.
	FailurePanic = "Panic"
	// FailureInvalidInput: the input could not be decoded into the activity's In. It is non-retryable.
	FailureInvalidInput = "InvalidInput"
	// FailureInvalidResult: the result could not be encoded, or breaks a limit. It is non-retryable.
	FailureInvalidResult = "InvalidResult"
)

// Error is the message.
func (f *Failure) Error() string { return f.Message }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error {
	if f.Cause == nil {
		return nil
	}
	return f.Cause
}

// NewFailure classifies the error of an attempt: what a worker reports for it. It returns nil for nil.
func NewFailure(err error, attempt int) *Failure {
	if err == nil {
		return nil
	}
	f := describe(err, 0)
	f.Attempt = attempt
	if _, ok := errors.AsType[*nonRetryableError](err); ok {
		f.NonRetryable = true
	}
	return f
}

func describe(err error, depth int) *Failure {
	if old, ok := err.(*Failure); ok { //nolint:errorlint // the chain is walked link by link
		c := *old
		return &c
	}
	f := &Failure{Type: typeOf(err), Message: cut(err.Error(), MaxErrorMessageBytes)}
	if p, ok := errors.AsType[*PanicError](err); ok && depth == 0 {
		f.Stack = cut(p.Stack, MaxErrorStackBytes)
	}
	if next := unwrapVisible(err); next != nil && depth < MaxErrorCauses {
		f.Cause = describe(next, depth+1)
	}
	return f
}

// unwrapVisible skips the wrappers that only mark an error.
func unwrapVisible(err error) error {
	next := errors.Unwrap(err)
	switch err.(type) { //nolint:errorlint // the chain is walked link by link
	case *nonRetryableError, *retryAfterError, *typedError:
		if next == nil {
			return nil
		}
		return unwrapVisible(next)
	}
	return next
}

// typeOf is the kind that Typed gave, else the Go type of the innermost error.
func typeOf(err error) string {
	if t, ok := errors.AsType[*typedError](err); ok {
		return t.kind
	}
	for {
		switch e := err.(type) { //nolint:errorlint // the chain is walked link by link
		case *PanicError:
			return FailurePanic
		case *Failure:
			return e.Type
		}
		next := errors.Unwrap(err)
		if next == nil {
			return cut(fmt.Sprintf("%T", err), MaxNameBytes)
		}
		err = next
	}
}

// Clip returns f cut to its limits and made valid: texts are valid UTF-8, the chain is at most
// [MaxErrorCauses] deep. A server applies it to what it is sent.
func (f *Failure) Clip() *Failure { return f.clip(0) }

func (f *Failure) clip(depth int) *Failure {
	if f == nil || depth > MaxErrorCauses {
		return nil
	}
	c := *f
	c.Type = cut(c.Type, MaxNameBytes)
	c.Message = cut(c.Message, MaxErrorMessageBytes)
	c.Stack = cut(c.Stack, MaxErrorStackBytes)
	c.Cause = f.Cause.clip(depth + 1)
	return &c
}

// cut shortens s to at most n bytes on a rune's edge.
func cut(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// PanicError is what a handler's panic becomes.
type PanicError struct {
	Value string // the value, as fmt prints it
	Stack string
}

func (e *PanicError) Error() string { return "panic: " + e.Value }

type nonRetryableError struct{ err error }

func (e *nonRetryableError) Error() string { return e.err.Error() }
func (e *nonRetryableError) Unwrap() error { return e.err }

// NonRetryable marks err: the row fails at once, whatever attempts are left. It returns nil for nil.
func NonRetryable(err error) error {
	if err == nil {
		return nil
	}
	return &nonRetryableError{err: err}
}

type retryAfterError struct {
	err   error
	delay time.Duration
}

func (e *retryAfterError) Error() string { return e.err.Error() }
func (e *retryAfterError) Unwrap() error { return e.err }

// RetryAfter marks err: the attempt is spent, and the next one starts after d, whatever the policy's wait
// would be. d is cut to between 1 ms and [MaxDelay]. It returns nil for a nil err.
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &retryAfterError{err: err, delay: min(max(d.Round(time.Millisecond), time.Millisecond), MaxDelay)}
}

// RetryDelay returns the delay that [RetryAfter] put on err, or 0.
func RetryDelay(err error) time.Duration {
	if e, ok := errors.AsType[*retryAfterError](err); ok {
		return e.delay
	}
	return 0
}

type typedError struct {
	kind string
	err  error
}

func (e *typedError) Error() string { return e.err.Error() }
func (e *typedError) Unwrap() error { return e.err }

// Typed gives err a kind, by which retry policies and people tell failures apart. kind is a name (see
// [ValidateName]); what breaks the rules is cut or replaced. It returns nil for a nil err.
func Typed(kind string, err error) error {
	if err == nil {
		return nil
	}
	return &typedError{kind: cut(kind, MaxNameBytes), err: err}
}

// Causes of an activity's context, see context.Cause.
var (
	// ErrCancelled: the run or the row was cancelled.
	ErrCancelled = errors.New("umbel: cancelled")
	// ErrLeaseLost: the row belongs to another worker, or may soon; what is reported may be dropped.
	ErrLeaseLost = errors.New("umbel: lease lost")
	// ErrTimedOut: the attempt's start-to-close has passed.
	ErrTimedOut = errors.New("umbel: start-to-close exceeded")
	// ErrWorkerStopping: the worker stops. A handler that returns now without success is released: another
	// worker gets the row, and no attempt is spent.
	ErrWorkerStopping = errors.New("umbel: worker stopping")
)
