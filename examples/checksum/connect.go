package main

import (
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel/internal/memredis"
)

// connect returns a client of the Redis at url, or of one in this process.
func connect(url string) (redis.UniversalClient, func(), error) {
	if url == "" {
		mem := memredis.Open()
		return mem.Client(), mem.Close, nil
	}
	opts, err := redis.ParseURL(url)
	if err != nil {
		return nil, nil, fmt.Errorf("--redis: %w", err)
	}
	rdb := redis.NewClient(opts)
	return rdb, func() { _ = rdb.Close() }, nil
}
