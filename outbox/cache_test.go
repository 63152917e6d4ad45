package outbox_test

import (
	"fmt"
	"testing"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/testredis"
	"github.com/umbelhq/umbel/outbox"
	"github.com/umbelhq/umbel/outbox/outboxtest"
)

// openRedis opens an empty store as what it is on Redis, with all of its keys.
func openRedis(t *testing.T, r *testredis.Redis) (*outbox.Redis, outboxtest.Keyspace) {
	t.Helper()
	store, err := outbox.NewRedis(t.Context(), r.Client, outbox.Options{Prefix: r.Prefix, Shards: 1})
	if err != nil {
		t.Fatal(err)
	}
	return store, outboxtest.Keyspace{Redis: r.Client, Prefix: r.Prefix}
}

// Redis was emptied under a store that had read a run, and another store writes a run of the same ID, in other chunks
// and of another content type.
func TestEmptiedUnderAStore(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, r *testredis.Redis) {
		t.Parallel()
		for _, id := range []umbel.RunID{"", "named"} {
			reader, keys := openRedis(t, r)
			writer, _ := openRedis(t, r)
			fill := func(s *outbox.Redis, n, size int, contentType string) {
				t.Helper()
				var rows []outbox.Row
				for o := range n {
					rows = append(rows, outbox.Row{
						WorkflowID: "w", RunID: id, Ordinal: int64(o), ActivityType: "act",
						Input: umbel.Payload{ContentType: contentType, Data: fmt.Appendf(nil, "%0*d", size, o)},
					})
				}
				if err := s.Append(t.Context(), rows); err != nil {
					t.Fatal(err)
				}
			}
			fill(reader, 10, 5, "text/plain")
			if rows, err := reader.Claim(t.Context(), 3); err != nil || len(rows) != 3 {
				t.Fatalf("claim: %d rows, %v", len(rows), err)
			}
			if err := keys.Clear(t.Context()); err != nil {
				t.Fatal(err)
			}
			fill(writer, 10, 3000, umbel.ContentTypeJSON)
			rows, err := reader.Claim(t.Context(), 20)
			if err != nil || len(rows) != 10 {
				t.Fatalf("claim: %d rows, %v", len(rows), err)
			}
			for o, row := range rows {
				if want := fmt.Sprintf("%0*d", 3000, o); string(row.Input.Data) != want || row.Input.ContentType != umbel.ContentTypeJSON {
					t.Errorf("row %d is %.20q of %s", o, row.Input.Data, row.Input.ContentType)
				}
			}
			if err := keys.Clear(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}
