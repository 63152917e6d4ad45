package outbox_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/testredis"
	"github.com/umbelhq/umbel/outbox"
)

// What a sorted set cannot hold exactly, or an instant overflows with, would be due at once.
func TestInstantsAreRefused(t *testing.T) {
	t.Parallel()
	r := testredis.Mini(t)
	store, err := outbox.NewRedis(t.Context(), r.Client, outbox.Options{Prefix: r.Prefix, Shards: 1})
	if err != nil {
		t.Fatal(err)
	}
	row := outbox.Row{WorkflowID: "w", ActivityType: "a"}
	if err := store.Append(t.Context(), []outbox.Row{row}); err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]time.Time{
		"before 1970":     time.Unix(-1, 0),
		"the year 10000":  time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC),
		"the year 300000": time.Date(300_000, 1, 1, 0, 0, 0, 0, time.UTC),
		"the end of time": time.Unix(math.MaxInt64, 0),
	} {
		late := row
		late.VisibleAfter = at
		_, stale := store.RearmStale(t.Context(), time.Now(), 1, at)
		for op, err := range map[string]error{
			"retry": store.Retry(t.Context(), row.Key(), 1, at), "rearm": store.Rearm(t.Context(), []outbox.Row{late}),
			"rearm stale": stale, "append": store.Append(t.Context(), []outbox.Row{late}),
		} {
			if !errors.Is(err, umbel.ErrInvalid) {
				t.Errorf("%s at %s: %v", op, name, err)
			}
		}
	}
	last := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	if err := store.Retry(t.Context(), row.Key(), 1, last); err != nil {
		t.Error(err)
	}
	if got, err := store.Get(t.Context(), row.Key()); err != nil || !got.VisibleAfter.Equal(last) {
		t.Errorf("%+v, %v", got, err)
	}
}
