// Resume prints the prime factors of the numbers from 1 on, as the command factor does. It may be killed at any moment,
// by kill -9 too: started again it goes on where it was. What was recorded is not worked out again.
//
//	resume [-n COUNT] [-each DURATION] [-data DIR] [-log FILE]
//
// With UMBEL_ADDR it is a client and a worker of the servers there. Without, it has a server of its own, on the
// redis-server on PATH, which keeps all in DIR.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/worker"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	if err := run(ctx, parse(os.Args)); err != nil {
		fmt.Fprintln(os.Stderr, "resume:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	engine, disconnect, err := connect(ctx, o.data, log)
	if err != nil {
		return err
	}
	defer disconnect()
	w, err := worker.New(engine, worker.Config{TaskQueue: queue, Concurrency: 8, Logger: log})
	if err != nil {
		return err
	}
	worker.Handle(w, Factor, o.factor)
	c, err := client.New(engine, client.Config{Logger: log})
	if err != nil {
		return err
	}

	ctx, stop := context.WithCancel(ctx)
	worked := make(chan error, 1)
	go func() {
		defer stop() // nobody would finish what the client waits for
		worked <- w.Run(ctx)
	}()
	err = printFactors(ctx, c, o)
	stop()
	return errors.Join(err, <-worked)
}

// printFactors starts the fan-out, or attaches to the one that an earlier process started, and prints all results in
// order.
func printFactors(ctx context.Context, c *client.Client, o options) error {
	run, err := client.FanOut(ctx, c, Factor, o.numbers(), o.id(), client.TaskQueue(queue))
	if err != nil {
		return err
	}
	for r, err := range run.Results(ctx, client.Ordered()) {
		switch {
		case err != nil:
			return err
		case r.Err != nil:
			return r.Err
		}
		fmt.Println(r.Value)
	}
	return nil
}
