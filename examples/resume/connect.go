package main

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/internal/localredis"
	"github.com/umbelhq/umbel/server"
)

// lease is how long the numbers wait that were in hand when this process was killed. It is short, because nobody else
// works here who might be slow to renew.
const lease = 5 * time.Second

// connect returns the engine and what to call when it is needed no more: that of the servers at UMBEL_ADDR, or one in
// this process on a Redis that keeps its data in dir.
func connect(ctx context.Context, dir string, log *slog.Logger) (umbel.Engine, func(), error) {
	if addr := os.Getenv("UMBEL_ADDR"); addr != "" {
		conn, err := client.Dial(addr)
		if err != nil {
			return nil, nil, err
		}
		return conn, func() { _ = conn.Close() }, nil
	}
	redis, err := localredis.Open(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	engine, err := server.Open(ctx, redis.Client(), server.Config{Lease: lease, Logger: log})
	if err != nil {
		redis.Close()
		return nil, nil, err
	}
	return engine, func() { _ = engine.Close(); redis.Close() }, nil
}
