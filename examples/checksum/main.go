// Checksum prints the SHA-256 of every regular file under a directory: the lines of sha256sum, sorted by path.
//
//	checksum [--redis URL] [--workflow-id ID] [--lease DURATION] DIR
//
// Server, worker and client are in this one process. With --redis and --workflow-id it may be killed at any
// moment: the same command goes on where it was, and once it is done prints the same again. Files that have come,
// gone or changed their name since make it another fan-out, which wants another ID.
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
	"github.com/umbelhq/umbel/server"
	"github.com/umbelhq/umbel/worker"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	if err := run(ctx, parse(os.Args)); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx) // the signal; what it interrupted says no more
		}
		fmt.Fprintln(os.Stderr, "checksum:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	rdb, closeRedis, err := connect(o.redis)
	if err != nil {
		return err
	}
	defer closeRedis()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	engine, err := server.Open(ctx, rdb, server.Config{Lease: o.lease, Logger: log})
	if err != nil {
		return err
	}
	defer engine.Close()
	w, err := worker.New(engine, worker.Config{Logger: log})
	if err != nil {
		return err
	}
	worker.Handle(w, Checksum, checksum)
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
	err = printSums(ctx, c, o)
	stop()
	return errors.Join(err, <-worked)
}
