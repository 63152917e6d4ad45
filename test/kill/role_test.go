package kill_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/server"
	"github.com/umbelhq/umbel/worker"
)

// square is what these processes have in common.
var square = umbel.Define[int, int]("square")

// play is the main function of a process that does one thing: start a fan-out, work, or gather. Each has a server
// of its own, since all that they share is Redis.
func play(role string, args []string) error {
	ctx := context.Background()
	opts, err := redis.ParseURL(args[0])
	if err != nil {
		return err
	}
	engine, err := server.Open(ctx, redis.NewClient(opts), server.Config{Lease: lease})
	if err != nil {
		return err
	}
	defer engine.Close()
	c, err := client.New(engine, client.Config{})
	if err != nil {
		return err
	}
	switch id := umbel.WorkflowID(args[1]); role {
	case "start":
		run, err := client.FanOut(ctx, c, square, upTo(rows), client.WorkflowID(id))
		if err != nil {
			return err
		}
		fmt.Println("started")
		return run.Wait(ctx) // until it is killed
	case "work", "linger", "yield":
		cfg := worker.Config{Concurrency: rows}
		if role == "yield" {
			cfg.MaxSilence = lease
		}
		w, err := worker.New(engine, cfg)
		if err != nil {
			return err
		}
		worker.Handle(w, square, func(ctx context.Context, n int) (int, error) {
			if role != "work" {
				select {
				case <-ctx.Done():
					return 0, context.Cause(ctx)
				case <-time.After(3 * lease):
				}
			}
			return n * n, nil
		})
		return w.Run(ctx)
	default:
		values, err := client.Attach(c, square, id).Gather(ctx)
		if err != nil {
			return err
		}
		for _, v := range values {
			fmt.Println(v)
		}
		return nil
	}
}

const (
	rows  = 1_000
	lease = umbel.MinLease
)

// squares is what gather must print.
func squares() string {
	var b strings.Builder
	for n := range upTo(rows) {
		fmt.Fprintln(&b, n*n)
	}
	return b.String()
}

func upTo(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}
