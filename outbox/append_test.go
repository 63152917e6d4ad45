package outbox_test

import (
	"errors"
	"strconv"
	"testing"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/testredis"
	"github.com/umbelhq/umbel/outbox"
)

// What is appended counts with what the run has: the run's bytes are bounded, not those of a call.
func TestAppendBoundsTheBytesOfARun(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, r *testredis.Redis) {
		t.Parallel()
		store, keys := openRedis(t, r)
		row := func(o int64, size int) outbox.Row {
			return outbox.Row{WorkflowID: "w", Ordinal: o, ActivityType: "act", Input: umbel.Payload{Data: make([]byte, size)}}
		}
		add := func(rows ...outbox.Row) error { return store.Append(t.Context(), rows) }
		if err := add(row(0, 10)); err != nil {
			t.Fatal(err)
		}
		id, err := store.Current(t.Context(), umbel.DefaultNamespace, "w")
		if err != nil {
			t.Fatal(err)
		}
		record := store.Shard(umbel.DefaultNamespace, "w").Run(string(id)).Record()
		if err := r.Client.HSet(t.Context(), record, "bytes", umbel.MaxRunInputBytes-100).Err(); err != nil {
			t.Fatal(err)
		}
		before := keys.Dump(t)
		err = add(row(1, 50), row(2, 51))
		if e, ok := errors.AsType[*umbel.Error](err); !ok || e.Code != umbel.CodeLimit || !e.NotApplied ||
			e.Value != strconv.Itoa(umbel.MaxRunInputBytes+1) {
			t.Errorf("one byte too many: %v", err)
		}
		if after := keys.Dump(t); after != before {
			t.Errorf("what was refused left traces:\n%s\nwas\n%s", after, before)
		}
		if err := add(row(1, 50), row(2, 50)); err != nil {
			t.Errorf("just enough: %v", err)
		}
	})
}

// Two workflows may not share a run: on one shard their rows would become one another's.
func TestAppendToAnothersRun(t *testing.T) {
	t.Parallel()
	store, keys := openRedis(t, testredis.Mini(t))
	row := func(namespace string, id umbel.WorkflowID) outbox.Row {
		return outbox.Row{Namespace: namespace, WorkflowID: id, RunID: "r", ActivityType: "act"}
	}
	if err := store.Append(t.Context(), []outbox.Row{row("", "w")}); err != nil {
		t.Fatal(err)
	}
	before := keys.Dump(t)
	for _, r := range []outbox.Row{row("", "other"), row("other", "w")} {
		if err := store.Append(t.Context(), []outbox.Row{r}); !errors.Is(err, umbel.ErrConflict) || !umbel.SafeToRetry(err) {
			t.Errorf("%q in %q: %v", r.WorkflowID, r.Namespace, err)
		}
	}
	if after := keys.Dump(t); after != before {
		t.Errorf("something was written:\n%s\nwas\n%s", after, before)
	}
}
