package history_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/outbox/outboxtest"
)

// checkHistory wants every history to be without a gap and to end at its head.
func checkHistory(t *testing.T, k outboxtest.Keyspace) error {
	t.Helper()
	names, err := k.Names(t.Context())
	if err != nil {
		return err
	}
	for _, name := range names {
		before, wf, ok := strings.Cut(name, "}:history:")
		if !ok {
			continue
		}
		entries, err := k.Redis.XRange(t.Context(), name, "-", "+").Result()
		if err != nil {
			return err
		}
		next := int64(1)
		for _, e := range entries {
			var first, count int64
			if n, _ := fmt.Sscanf(e.ID, "%d-%d", &first, &count); n != 2 || first != next || count < 1 {
				return fmt.Errorf("history of %s goes on with %s, want %d", wf, e.ID, next)
			}
			next += count
		}
		head, err := k.Redis.HGet(t.Context(), before+"}:wf:"+wf, "head").Int64()
		if err != nil || head != next-1 {
			return fmt.Errorf("history of %s ends at %d, the head is %d: %w", wf, next-1, head, err)
		}
	}
	return nil
}
