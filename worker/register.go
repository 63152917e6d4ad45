package worker

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/attempt"
)

// activityType is a registered activity type.
type activityType struct {
	name    string
	handler umbel.Handler // wrapped in the interceptors
	limit   int           // slots of its own, 0: those of the worker
	busy    int           // guarded by Worker.mu
}

// HandleOption sets how one activity type is run.
type HandleOption interface{ applyHandle(*handleParams) }

type handleParams struct {
	limited bool
	limit   int
}

type handleOption func(*handleParams)

func (o handleOption) applyHandle(p *handleParams) { o(p) }

// MaxConcurrency bounds how many handlers of one activity type run at once, below [Config.Concurrency]. From 1
// to [umbel.MaxConcurrency]. While the type's slots are taken its rows stay queued, for other workers to take.
func MaxConcurrency(n int) HandleOption {
	return handleOption(func(p *handleParams) { p.limited, p.limit = true, n })
}

// Handle registers fn for the rows of a. It panics, saying what to do, if a or an option breaks a rule, if the
// type is registered already, or if Run was called before; [TryHandle] returns that instead.
//
// fn is called from many goroutines at once. Its context ends when the attempt is to end, and context.Cause
// says why: [umbel.ErrTimedOut], [umbel.ErrCancelled], [umbel.ErrLeaseLost] or [umbel.ErrWorkerStopping]. What fn
// returns without an error is the row's result, also after its context has ended; an error is a failed attempt,
// classified by [umbel.NewFailure]. A panic is a failed attempt too. An input that cannot be decoded, and a
// result that cannot be encoded, fail the row for good.
func Handle[In, Out any](w *Worker, a umbel.Activity[In, Out], fn func(context.Context, In) (Out, error), opts ...HandleOption) {
	if err := TryHandle(w, a, fn, opts...); err != nil {
		panic(err.Error()) //nolint:forbidigo // a registration that cannot work; TryHandle returns it
	}
}

// TryHandle is [Handle] for programs that register what they are told to at run time: it returns the problem.
// The error matches [umbel.ErrInvalid].
func TryHandle[In, Out any](w *Worker, a umbel.Activity[In, Out], fn func(context.Context, In) (Out, error), opts ...HandleOption) error {
	if fn == nil {
		return registerError(a.Name(), umbel.Invalid("handler", "nil", "must be a function"))
	}
	if err := a.Policy().Validate(); err != nil {
		return registerError(a.Name(), err)
	}
	return w.register(a.Name(), attempt.Typed(a.Codec(), fn), opts)
}

// HandleFunc registers h for the rows of an activity type, on payloads as they are. Everything else is as with
// [Handle], panics included; [TryHandleFunc] returns the problem.
func HandleFunc(w *Worker, name string, h umbel.Handler, opts ...HandleOption) {
	if err := TryHandleFunc(w, name, h, opts...); err != nil {
		panic(err.Error()) //nolint:forbidigo // a registration that cannot work; TryHandle returns it
	}
}

// TryHandleFunc is [HandleFunc], but returns the problem, as [TryHandle] does.
func TryHandleFunc(w *Worker, name string, h umbel.Handler, opts ...HandleOption) error {
	if h == nil {
		return registerError(name, umbel.Invalid("handler", "nil", "must be a function"))
	}
	return w.register(name, h, opts)
}

func (w *Worker) register(name string, h umbel.Handler, opts []HandleOption) error {
	if err := umbel.ValidateName("activity type", name); err != nil {
		return registerError(name, err)
	}
	var p handleParams
	for _, o := range opts {
		if o == nil {
			return registerError(name, umbel.Invalid("option", "nil", "must be made by this package, such as MaxConcurrency(10)"))
		}
		o.applyHandle(&p)
	}
	if p.limited && (p.limit < 1 || p.limit > umbel.MaxConcurrency) {
		return registerError(name, umbel.Invalid("max concurrency", strconv.Itoa(p.limit),
			fmt.Sprintf("must be from 1 to %d; leave the option out for no bound of its own", umbel.MaxConcurrency)))
	}
	if p.limit >= w.cfg.Concurrency {
		p.limit = 0 // the worker's own slots are the tighter bound
	}
	for i, ic := range slices.Backward(w.cfg.Interceptors) {
		if h = ic(h); h == nil {
			return registerError(name, umbel.Invalid("interceptor", strconv.Itoa(i), "must not return nil: return the handler it was given to leave a type alone"))
		}
	}

	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state != stateNew {
		return registerError(name, umbel.Invalid("activity type", name, "is registered too late: register before Run, Drain and Stop"))
	}
	if w.types[name] != nil {
		return registerError(name, umbel.Invalid("activity type", name, "has a handler already: one Handle for each type and worker"))
	}
	w.types[name] = &activityType{name: name, handler: h, limit: p.limit}
	return nil
}

func registerError(name string, err error) error {
	return fmt.Errorf("worker: register %q: %w", name, err)
}
