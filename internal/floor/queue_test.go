package floor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/umbelhq/umbel/internal/floor"
	"github.com/umbelhq/umbel/internal/testredis"
)

// inputs returns n inputs that differ.
func inputs(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%0100d", i)
	}
	return all
}

func TestPopTakesEachRowOnce(t *testing.T) {
	t.Parallel()
	r := testredis.Shared(t)
	q := floor.New(r.Client, r.Prefix)
	want := inputs(2*floor.Batch + 50)
	if n, err := q.Enqueue(t.Context(), 0, slices.Values(want)); n != len(want) || err != nil {
		t.Fatalf("enqueued %d, %v, want %d", n, err, len(want))
	}
	got := make([]string, len(want))
	for _, size := range []int{floor.Batch, floor.Batch, 50, 0} {
		rows, err := q.Pop(t.Context())
		if err != nil || len(rows) != size {
			t.Fatalf("popped %d rows, %v, want %d", len(rows), err, size)
		}
		for _, row := range rows {
			i, err := strconv.Atoi(row.ID)
			if err != nil || got[i] != "" {
				t.Fatalf("row %q comes again, or is none: %v", row.ID, err)
			}
			got[i] = row.Input
		}
	}
	if !slices.Equal(got, want) {
		t.Error("the inputs popped are not those enqueued")
	}
}

func TestAckStoresResults(t *testing.T) {
	t.Parallel()
	r := testredis.Shared(t)
	q := floor.New(r.Client, r.Prefix)
	if _, err := q.Enqueue(t.Context(), 7, slices.Values(inputs(1))); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := q.Result(t.Context(), 7); ok || err != nil {
		t.Errorf("a row that waits has a result: %t, %v", ok, err)
	}
	rows, err := q.Pop(t.Context())
	if err != nil || len(rows) != 1 {
		t.Fatalf("popped %v, %v", rows, err)
	}
	if err := q.Ack(t.Context(), rows, nil); err == nil {
		t.Error("an acknowledgement without results passes")
	}
	if err := q.Ack(t.Context(), rows, []string{"done"}); err != nil {
		t.Fatal(err)
	}
	if got, ok, err := q.Result(t.Context(), 7); got != "done" || !ok || err != nil {
		t.Errorf("result %q, %t, %v", got, ok, err)
	}
}

// Work runs rows that are enqueued while it runs, each once, and ends with the last.
func TestWork(t *testing.T) {
	t.Parallel()
	r := testredis.Shared(t)
	q := floor.New(r.Client, r.Prefix)
	const n = 1_010
	var mu sync.Mutex
	runs := map[string]int{}
	worked := make(chan error, 1)
	go func() {
		worked <- q.Work(t.Context(), n, func(input string) string {
			mu.Lock()
			defer mu.Unlock()
			runs[input]++
			return input[80:]
		})
	}()
	all := inputs(n)
	if _, err := q.Enqueue(t.Context(), 0, slices.Values(all)); err != nil {
		t.Fatal(err)
	}
	if err := <-worked; err != nil {
		t.Fatal(err)
	}
	for i, input := range all {
		if runs[input] != 1 {
			t.Errorf("row %d ran %d times", i, runs[input])
		}
		if got, ok, err := q.Result(t.Context(), i); got != input[80:] || !ok || err != nil {
			t.Errorf("row %d: result %q, %t, %v", i, got, ok, err)
		}
	}
}

func TestWorkEndsWithItsContext(t *testing.T) {
	t.Parallel()
	r := testredis.Shared(t)
	q := floor.New(r.Client, r.Prefix)
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := q.Enqueue(ctx, 0, slices.Values(inputs(1))); err != nil {
		t.Fatal(err)
	}
	err := q.Work(ctx, 2, func(string) string {
		cancel() // the second row never comes
		return ""
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v, want the end of its context", err)
	}
	if n, err := q.Enqueue(ctx, 1, slices.Values(inputs(1))); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("enqueued %d, %v after the context's end", n, err)
	}
}
