// Hello is the smallest fan-out: server, worker and client in one process, on an embedded in-memory Redis.
package main

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/internal/memredis"
	"github.com/umbelhq/umbel/server"
	"github.com/umbelhq/umbel/worker"
)

// Greet is the contract between client and worker.
var Greet = umbel.Define[string, string]("greet")

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "hello:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	redis := memredis.Open()
	defer redis.Close()
	engine, err := server.Open(ctx, redis.Client(), server.Config{})
	if err != nil {
		return err
	}
	defer engine.Close()

	w, err := worker.New(engine, worker.Config{})
	if err != nil {
		return err
	}
	worker.Handle(w, Greet, func(_ context.Context, name string) (string, error) {
		return "Hello, " + name + "!", nil
	})
	working, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- w.Run(working) }()

	c, err := client.New(engine, client.Config{})
	if err != nil {
		return err
	}
	fanOut, err := client.FanOut(ctx, c, Greet, slices.Values([]string{"Ada", "Grace", "Katherine"}))
	if err != nil {
		return err
	}
	greetings, err := fanOut.Gather(ctx)
	if err != nil {
		return err
	}
	for _, g := range greetings {
		fmt.Println(g)
	}
	stop()
	return <-done
}
