package client_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/internal/memredis"
	"github.com/umbelhq/umbel/server"
	"github.com/umbelhq/umbel/worker"
)

// Set-up of the examples: a server on an in-memory Redis with a worker, so that they run anywhere.

// The contracts that the examples share with the worker.
var (
	Square = umbel.Define[int, int]("square")
	Upper  = umbel.Define[string, string]("upper")
	Check  = umbel.Define[string, umbel.None]("check", umbel.Retry(umbel.RetryPolicy{MaxAttempts: 1}))
)

// exampleEngine is what server.Open returns.
var exampleEngine = sync.OnceValue(func() *server.Server {
	quiet := slog.New(slog.DiscardHandler)
	e, err := server.Open(context.Background(), memredis.Open().Client(), server.Config{Logger: quiet})
	if err != nil {
		panic(err)
	}
	w, err := worker.New(e, worker.Config{Logger: quiet})
	if err != nil {
		panic(err)
	}
	worker.Handle(w, Square, func(_ context.Context, n int) (int, error) { return n * n, nil })
	worker.Handle(w, Upper, func(_ context.Context, s string) (string, error) { return strings.ToUpper(s), nil })
	worker.Handle(w, Check, func(_ context.Context, s string) (umbel.None, error) {
		if s == "bad" {
			return umbel.None{}, errors.New("does not pass")
		}
		return umbel.None{}, nil
	})
	go w.Run(context.Background())
	return e
})

// connect returns a client of a server with workers.
func connect() *client.Client {
	c, err := client.New(exampleEngine(), client.Config{})
	if err != nil {
		panic(err)
	}
	return c
}
