package server_test

import (
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/testredis"
)

// Case 68: 100 free slots and inputs of 2 MiB: each reply stays under its limit in bytes, and all rows come. The same
// with inputs that fill chunks to the brim.
func TestCase68PollBytes(t *testing.T) {
	t.Parallel()
	const ns = umbel.DefaultNamespace
	s := serve(t, testredis.Shared(t))
	for name, c := range map[string]struct{ n, size int }{
		"inputs of 2 MiB": {7, umbel.MaxPayloadBytes},
		"full chunks":     {400, 16<<10 - 300},
	} {
		id := umbel.WorkflowID(name)
		b, err := s.Begin(t.Context(), umbel.BeginRequest{Namespace: ns, WorkflowID: id})
		if err != nil {
			t.Fatal(err)
		}
		for i := range c.n {
			_, err := s.Stage(t.Context(), umbel.StageRequest{
				Namespace: ns, WorkflowID: id, StagingID: b.StagingID, Offset: int64(i),
				Rows: []umbel.StagedRow{{Type: "a", Input: umbel.Payload{Data: make([]byte, c.size)}}},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		_, err = s.Commit(t.Context(), umbel.CommitRequest{
			Namespace: ns, WorkflowID: id, StagingID: b.StagingID, Scheduled: int64(c.n),
		})
		if err != nil {
			t.Fatal(err)
		}
		for got := 0; got < c.n; {
			reply, err := s.Poll(t.Context(), umbel.PollRequest{
				Namespace: ns, TaskQueue: umbel.DefaultTaskQueue, Types: []string{"a"}, Worker: "w", MaxRows: 100, Wait: 20 * time.Second,
			})
			if err != nil || len(reply.Rows) == 0 {
				t.Fatalf("%s: %d of %d rows, %v", name, got, c.n, err)
			}
			bytes := 0
			for _, row := range reply.Rows {
				bytes += len(row.Input.Data)
			}
			if bytes > umbel.MaxPollBytes {
				t.Errorf("%s: a reply of %d bytes in %d rows", name, bytes, len(reply.Rows))
			}
			got += len(reply.Rows)
		}
	}
}
