package attempt

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/umbelhq/umbel"
)

// Call runs h and hands what came of it to done, exactly once, whatever h does: a panic and runtime.Goexit are
// errors with their stack, a result that breaks a limit is one too. It is called in a goroutine of its own, which
// h may end.
func Call(ctx context.Context, h umbel.Handler, in umbel.Payload, done func(umbel.Payload, error)) {
	var (
		out      umbel.Payload
		err      error
		returned bool
	)
	defer func() {
		if !returned {
			err = Panicked(recover())
		}
		done(out, err)
	}()
	out, err = h(ctx, in)
	if err == nil {
		if invalid := out.Validate("result"); invalid != nil {
			err = InvalidResult(invalid)
		}
	}
	returned = true
}

// Panicked describes a panic. It is called while the stack still has the frames that panicked.
func Panicked(v any) error {
	value := "runtime.Goexit was called"
	if v != nil { // panic(nil) is a *runtime.PanicNilError
		value = fmt.Sprint(v)
	}
	return &umbel.PanicError{Value: value, Stack: string(debug.Stack())}
}

// Typed decodes and encodes around fn.
func Typed[In, Out any](codec umbel.Codec, fn func(context.Context, In) (Out, error)) umbel.Handler {
	return func(ctx context.Context, p umbel.Payload) (umbel.Payload, error) {
		var in In
		if err := codec.Decode(p, &in); err != nil {
			return umbel.Payload{}, umbel.NonRetryable(umbel.Typed(umbel.FailureInvalidInput, err))
		}
		out, err := fn(ctx, in)
		if err != nil {
			return umbel.Payload{}, err
		}
		p, err = codec.Encode(out)
		if err != nil {
			return umbel.Payload{}, InvalidResult(err)
		}
		return p, nil
	}
}

// InvalidResult is the failure of a result that no other attempt can make valid.
func InvalidResult(err error) error {
	return umbel.NonRetryable(umbel.Typed(umbel.FailureInvalidResult, err))
}
