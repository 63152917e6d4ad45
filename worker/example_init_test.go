package worker_test

import (
	"context"
	"log/slog"
	"sync"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/internal/memredis"
	"github.com/umbelhq/umbel/server"
	"github.com/umbelhq/umbel/worker"
)

// Set-up of the examples: a server on an in-memory Redis, so that they run anywhere.

// engine is what server.Open returns.
var engine = sync.OnceValue(func() *server.Server {
	e, err := server.Open(context.Background(), memredis.Open().Client(), server.Config{Logger: quiet})
	if err != nil {
		panic(err)
	}
	return e
})

// quiet keeps the examples' logs out of their output.
var quiet = slog.New(slog.DiscardHandler)

// start runs a worker until the function that it returns has drained it.
func start(w *worker.Worker) (drain func()) {
	go w.Run(context.Background())
	return func() { _ = w.Drain(context.Background()) }
}

// do stands for a client somewhere that starts one row of a, and waits for it.
func do[In, Out any](a umbel.Activity[In, Out], in In, opts ...client.StartOption) (Out, error) {
	c, err := client.New(engine(), client.Config{})
	if err != nil {
		panic(err)
	}
	return client.Do(context.Background(), c, a, in, opts...)
}
