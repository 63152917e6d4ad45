package umbel_test

import (
	"context"
	"log/slog"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/internal/memredis"
	"github.com/umbelhq/umbel/server"
	"github.com/umbelhq/umbel/worker"
)

// Set-up of the examples: a server on an in-memory Redis, so that they run anywhere.

// open returns a server, and what ends it.
func open(ctx context.Context) (engine *server.Server, end func()) {
	redis := memredis.Open()
	engine, err := server.Open(ctx, redis.Client(), server.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	return engine, func() {
		_ = engine.Close()
		redis.Close()
	}
}

// serve runs a worker that handles a with fn, and returns a client that can start it.
func serve[In, Out any](
	a umbel.Activity[In, Out], fn func(context.Context, In) (Out, error),
) (c *client.Client, end func()) {
	engine, closeEngine := open(context.Background())
	w, err := worker.New(engine, worker.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	worker.Handle(w, a, fn)
	go w.Run(context.Background())
	if c, err = client.New(engine, client.Config{}); err != nil {
		panic(err)
	}
	return c, func() {
		_ = w.Drain(context.Background())
		closeEngine()
	}
}
