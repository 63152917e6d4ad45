package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/worker"
)

var (
	Upper  = umbel.Define[string, string]("upper")
	Charge = umbel.Define[int, string]("charge")
	Echo   = umbel.Define[umbel.Payload, umbel.Payload]("echo")
	Walk   = umbel.Define[string, umbel.None]("walk")
)

// New makes a worker, Handle says what it can do, Run does it until its context ends.
func ExampleNew() {
	w, err := worker.New(engine(), worker.Config{TaskQueue: "letters", Concurrency: 32, Logger: quiet})
	if err != nil {
		fmt.Println(err)
		return
	}
	worker.Handle(w, Upper, func(_ context.Context, s string) (string, error) {
		return strings.ToUpper(s), nil
	})

	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- w.Run(ctx) }()
	fmt.Println(do(Upper, "umbel", client.TaskQueue("letters")))
	stop()
	fmt.Println(<-ran, w.Stats().Completed)
	// Output:
	// UMBEL <nil>
	// <nil> 1
}

// A handler gets the input, decoded, and a context that ends when the attempt is to end.
func ExampleHandle() {
	w, err := worker.New(engine(), worker.Config{Logger: quiet})
	if err != nil {
		fmt.Println(err)
		return
	}
	worker.Handle(w, Upper, func(_ context.Context, s string) (string, error) {
		if s == "" {
			return "", umbel.NonRetryable(errors.New("nothing to do"))
		}
		return strings.ToUpper(s), nil
	}, worker.MaxConcurrency(4))
	defer start(w)()

	fmt.Println(do(Upper, "umbel"))
	_, err = do(Upper, "")
	fmt.Println(err)
	// Output:
	// UMBEL <nil>
	// nothing to do
}

// HandleFunc is for payloads as they are: a proxy, or a type that is known at run time only.
func ExampleHandleFunc() {
	w, err := worker.New(engine(), worker.Config{Logger: quiet})
	if err != nil {
		fmt.Println(err)
		return
	}
	worker.HandleFunc(w, "echo", func(_ context.Context, in umbel.Payload) (umbel.Payload, error) {
		return in, nil
	})
	defer start(w)()

	out, err := do(Echo, umbel.Payload{ContentType: "text/plain", Data: []byte("as it is")})
	fmt.Println(out.ContentType, string(out.Data), err)
	// Output: text/plain as it is <nil>
}

// An activity may run more than once. Hand the idempotency key, which is equal over the attempts of a row, to
// services that take one.
func ExampleInfo() {
	w, err := worker.New(engine(), worker.Config{Logger: quiet})
	if err != nil {
		fmt.Println(err)
		return
	}
	worker.Handle(w, Charge, func(ctx context.Context, cents int) (string, error) {
		info := worker.Info(ctx)
		if !strings.HasSuffix(info.IdempotencyKey, ":0") { // workflow, run, ordinal
			return "", errors.New("no key")
		}
		return fmt.Sprintf("%d cents for row %s, attempt %d", cents, info.DispatchKey, info.Attempt), nil
	})
	defer start(w)()

	fmt.Println(do(Charge, 1999, client.WorkflowID("invoices-2026-11")))
	// Output: 1999 cents for row invoices-2026-11:0, attempt 1 <nil>
}

// Stop hands back what runs: the handler's context ends with ErrWorkerStopping, and the row goes to another worker
// without having spent an attempt.
func ExampleWorker_Stop() {
	running := make(chan struct{})
	first, err := worker.New(engine(), worker.Config{Logger: quiet})
	if err != nil {
		fmt.Println(err)
		return
	}
	worker.Handle(first, Walk, func(ctx context.Context, _ string) (umbel.None, error) {
		close(running)
		<-ctx.Done()
		return umbel.None{}, context.Cause(ctx)
	})
	start(first)
	done := make(chan error, 1)
	go func() {
		_, err := do(Walk, "a long way")
		done <- err
	}()
	<-running
	fmt.Println("stopped:", first.Stop(context.Background()))

	second, err := worker.New(engine(), worker.Config{Logger: quiet})
	if err != nil {
		fmt.Println(err)
		return
	}
	worker.Handle(second, Walk, func(ctx context.Context, way string) (umbel.None, error) {
		fmt.Println(way, "in attempt", worker.Info(ctx).Attempt)
		return umbel.None{}, nil
	})
	defer start(second)()
	fmt.Println("done:", <-done)
	// Output:
	// stopped: <nil>
	// a long way in attempt 1
	// done: <nil>
}
