package outboxtest_test

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/outbox"
	"github.com/umbelhq/umbel/outbox/outboxtest"
)

// sharded is a model of several shards: a claim takes what it can from one after the other and merges.
type sharded struct {
	*outboxtest.Model

	mu sync.Mutex // makes a claim of two steps one
}

const shards = 3

func shardOf(_ string, id umbel.WorkflowID) int {
	sum := 0
	for _, c := range []byte(id) {
		sum += int(c)
	}
	return sum % shards
}

func (s *sharded) Claim(ctx context.Context, limit int) ([]outbox.Row, error) {
	return s.merge(ctx, limit, func() ([]outbox.Row, error) { return s.Model.Claim(ctx, 1_000_000) })
}

func (s *sharded) ClaimScoped(ctx context.Context, scope outbox.Scope, limit int) ([]outbox.Row, error) {
	return s.merge(ctx, limit, func() ([]outbox.Row, error) { return s.Model.ClaimScoped(ctx, scope, 1_000_000) })
}

// merge claims all that is due and puts back what the limit cuts off, shard by shard from the last.
func (s *sharded) merge(ctx context.Context, limit int, all func() ([]outbox.Row, error)) ([]outbox.Row, error) {
	if limit < 1 {
		return s.Model.Claim(ctx, limit)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	rows, err := all()
	slices.SortStableFunc(rows, func(x, y outbox.Row) int { return shardOf("", y.WorkflowID) - shardOf("", x.WorkflowID) })
	if len(rows) > limit {
		_ = s.Rearm(ctx, rows[limit:])
		rows = rows[:limit]
	}
	slices.SortFunc(rows, outbox.Compare)
	return rows, err
}

func (s *sharded) Complete(ctx context.Context, key outbox.Key) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Model.Complete(ctx, key)
}

func (s *sharded) Fail(ctx context.Context, key outbox.Key) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Model.Fail(ctx, key)
}

func (s *sharded) Cancel(ctx context.Context, key outbox.Key) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Model.Cancel(ctx, key)
}

func (s *sharded) Retry(ctx context.Context, key outbox.Key, attempt int, visible time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Model.Retry(ctx, key, attempt, visible)
}
