package server_test

import (
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel/internal/memredis"
)

// Set-up of the examples: an in-memory Redis, so that they run anywhere.

var memory = memredis.Open()

// connect stands for redis.NewClient, redis.NewFailoverClient or redis.NewClusterClient.
func connect() redis.UniversalClient { return memory.Client() }

// logger keeps the examples quiet.
var logger = slog.New(slog.DiscardHandler)
