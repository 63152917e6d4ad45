package outbox

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel/internal/keys"
)

// Lease reads the lease that is stored for the installation, 0 if none is.
func (o *Redis) Lease(ctx context.Context) (time.Duration, error) {
	var ms int64
	err := o.scripts.Retry(ctx, func() (err error) {
		ms, err = o.rdb.HGet(ctx, keys.Meta(o.space.Prefix()), "lease").Int64()
		if errors.Is(err, redis.Nil) {
			return nil
		}
		return err
	})
	return time.Duration(ms) * time.Millisecond, o.fail("read lease", err)
}

// SetLease stores the installation's lease.
func (o *Redis) SetLease(ctx context.Context, d time.Duration) error {
	err := o.scripts.Retry(ctx, func() error {
		return o.rdb.HSet(ctx, keys.Meta(o.space.Prefix()), "lease", d.Milliseconds()).Err()
	})
	return o.fail("store lease", err)
}

// MemoryShare returns how much of its maxmemory Redis uses, of a cluster the fullest master; 0 without a limit.
func (o *Redis) MemoryShare(ctx context.Context) (float64, error) {
	cluster, ok := o.rdb.(*redis.ClusterClient)
	if !ok {
		return memoryShare(ctx, o.rdb)
	}
	var mu sync.Mutex
	var most float64
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
		share, err := memoryShare(ctx, c)
		mu.Lock()
		defer mu.Unlock()
		most = max(most, share)
		return err
	})
	return most, err
}

func memoryShare(ctx context.Context, c redis.UniversalClient) (float64, error) {
	info, err := c.Info(ctx, "memory").Result()
	if err != nil {
		return 0, Failure("read memory", err)
	}
	var used, limit float64
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "used_memory":
			used, _ = strconv.ParseFloat(value, 64)
		case "maxmemory":
			limit, _ = strconv.ParseFloat(value, 64)
		}
	}
	if limit == 0 {
		return 0, nil
	}
	return used / limit, nil
}
