package outboxtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Keyspace is what an installation keeps in Redis: all keys that begin with its prefix.
type Keyspace struct {
	Redis  redis.UniversalClient
	Prefix string
}

// Names returns the keys, sorted.
func (k Keyspace) Names(ctx context.Context) ([]string, error) {
	var mu sync.Mutex
	var all []string
	scan := func(ctx context.Context, c redis.Cmdable) error {
		for cursor := uint64(0); ; {
			names, next, err := c.Scan(ctx, cursor, k.Prefix+":*", 1000).Result()
			if err != nil {
				return fmt.Errorf("scan: %w", err)
			}
			mu.Lock()
			all = append(all, names...)
			mu.Unlock()
			if cursor = next; cursor == 0 {
				return nil
			}
		}
	}
	var err error
	if cluster, ok := k.Redis.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error { return scan(ctx, c) })
	} else {
		err = scan(ctx, k.Redis)
	}
	slices.Sort(all)
	return slices.Compact(all), err
}

// Clear removes the keys.
func (k Keyspace) Clear(ctx context.Context) error {
	names, err := k.Names(ctx)
	if err != nil {
		return err
	}
	_, err = k.Redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, name := range names {
			p.Unlink(ctx, name)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("clear: %w", err)
	}
	return nil
}

// Dump renders all that is kept, to be compared.
func (k Keyspace) Dump(t testing.TB) string {
	t.Helper()
	ctx := t.Context()
	names, err := k.Names(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, name := range names {
		kind, err := k.Redis.Type(ctx, name).Result()
		var value any
		switch kind {
		case "string":
			value, err = k.Redis.Get(ctx, name).Result()
		case "hash":
			value, err = k.Redis.HGetAll(ctx, name).Result() // fmt sorts maps
		case "zset":
			value, err = k.Redis.ZRangeWithScores(ctx, name, 0, -1).Result()
		case "stream":
			value, err = k.Redis.XRange(ctx, name, "-", "+").Result()
		case "none": // it expired
			continue
		}
		if err != nil {
			t.Fatalf("%s %s: %v", kind, name, err)
		}
		_, _ = fmt.Fprintf(&b, "%s %s: %q\n", kind, name, fmt.Sprintf("%v", value))
	}
	return b.String()
}
