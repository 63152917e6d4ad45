package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/internal/floor"
	"github.com/umbelhq/umbel/server"
	"github.com/umbelhq/umbel/worker"
)

// slots of the worker: handlers that run at once.
const slots = 100

// quiet keeps the start of each process out of the output.
var quiet = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))

// play is the main function of a process: a URL, and for those that measure a task and its size.
func play(ctx context.Context, role string, args []string) error {
	url := args[0]
	switch role {
	case "floor":
		rdb, err := connect(url)
		if err != nil {
			return err
		}
		defer rdb.Close()
		return perform(ctx, &floorPlayer{q: floor.New(rdb, "floor")}, args[1:])
	case "embedded":
		return embedded(ctx, url, args[1:])
	case "server":
		return serve(ctx, url)
	case "worker", "client":
		conn, err := client.Dial(url)
		if err != nil {
			return err
		}
		defer conn.Close()
		if role == "worker" {
			return work(ctx, conn)
		}
		p, err := newUmbelPlayer(conn)
		if err != nil {
			return err
		}
		return perform(ctx, p, args[1:])
	}
	return fmt.Errorf("no role %q", role)
}

// perform does a task and prints what it found.
func perform(ctx context.Context, p player, args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	found, err := tasks[args[0]](ctx, p, n)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(found)
}

func connect(url string) (*redis.Client, error) {
	opts, err := redis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	return redis.NewClient(opts), nil
}

// embedded is server, worker and client in one process.
func embedded(ctx context.Context, url string, args []string) (err error) {
	rdb, err := connect(url)
	if err != nil {
		return err
	}
	defer rdb.Close()
	engine, err := server.Open(ctx, rdb, server.Config{Logger: quiet})
	if err != nil {
		return err
	}
	defer engine.Close()
	working, stop := context.WithCancel(ctx)
	worked := make(chan error, 1)
	go func() { worked <- work(working, engine) }()
	defer func() {
		stop()
		err = errors.Join(err, <-worked)
	}()
	p, err := newUmbelPlayer(engine)
	if err != nil {
		return err
	}
	return perform(ctx, p, args)
}

// serve is a server until ctx ends. It prints where it listens.
func serve(ctx context.Context, url string) error {
	rdb, err := connect(url)
	if err != nil {
		return err
	}
	defer rdb.Close()
	s, err := server.Open(ctx, rdb, server.Config{Logger: quiet})
	if err != nil {
		return err
	}
	defer s.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + l.Addr().String())
	return s.Serve(ctx, l)
}

// work runs rows until ctx ends.
func work(ctx context.Context, engine umbel.Engine) error {
	w, err := worker.New(engine, worker.Config{Concurrency: slots, Logger: quiet})
	if err != nil {
		return err
	}
	worker.Handle(w, activity, func(_ context.Context, in umbel.Payload) (umbel.Payload, error) {
		return umbel.Payload{ContentType: in.ContentType, Data: arrived(in.Data)}, nil
	})
	return w.Run(ctx)
}

func newUmbelPlayer(engine umbel.Engine) (*umbelPlayer, error) {
	c, err := client.New(engine, client.Config{Logger: quiet})
	return &umbelPlayer{c: c}, err
}
