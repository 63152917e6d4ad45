package server_test

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/testredis"
	"github.com/umbelhq/umbel/server"
)

func serve(t *testing.T, r *testredis.Redis) *server.Server {
	t.Helper()
	s, err := server.Open(t.Context(), r.Client, server.Config{
		Prefix: r.Prefix, Shards: 1, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func commit(t *testing.T, s *server.Server, id umbel.WorkflowID) umbel.RunID {
	t.Helper()
	r, err := s.Commit(t.Context(), umbel.CommitRequest{
		Namespace: umbel.DefaultNamespace, WorkflowID: id, Scheduled: 1, Rows: []umbel.StagedRow{{Type: "a"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r.RunID
}

// keysOf names the keys of everything whose name ends with the run's ID.
func keysOf(t *testing.T, r *testredis.Redis, what string, run umbel.RunID) string {
	t.Helper()
	keys, err := r.Client.Keys(t.Context(), fmt.Sprintf("%s:{*}:%s:%s", r.Prefix, what, run)).Result()
	if err != nil || len(keys) != 1 {
		t.Fatalf("keys of %s: %v, %v", what, keys, err)
	}
	return keys[0]
}

// Redis is taken back to between the last staging call and the commit, and the server still remembers the run: to
// describe it is not found, not an empty success.
func TestLostCommitIsNoRun(t *testing.T) {
	t.Parallel()
	r := testredis.Shared(t)
	s := serve(t, r)
	id := umbel.WorkflowID("lost commit")
	run := commit(t, s, id)
	describe := umbel.DescribeRequest{Namespace: umbel.DefaultNamespace, WorkflowID: id, RunID: run}
	if _, err := s.Describe(t.Context(), describe); err != nil {
		t.Fatal(err)
	}
	if err := r.Client.HSet(t.Context(), keysOf(t, r, "run", run), "status", "staging").Err(); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Describe(t.Context(), describe); !errors.Is(err, umbel.ErrNotFound) {
		t.Errorf("%+v, %v", got, err)
	}
}

// Runs whose records are gone, evicted say, stand before a live one on its route. They make way.
func TestLeftoversLeaveTheirRoutes(t *testing.T) {
	t.Parallel()
	r := testredis.Shared(t)
	s := serve(t, r)
	for i := range 40 {
		run := commit(t, s, umbel.WorkflowID(fmt.Sprintf("gone %d", i)))
		if err := r.Client.Del(t.Context(), keysOf(t, r, "run", run)).Err(); err != nil {
			t.Fatal(err)
		}
	}
	live := commit(t, s, "live")
	reply, err := s.Poll(t.Context(), umbel.PollRequest{
		Namespace: umbel.DefaultNamespace, TaskQueue: umbel.DefaultTaskQueue, Types: []string{"a"}, Worker: "w", MaxRows: 10,
		Wait: 20 * time.Second,
	})
	if err != nil || len(reply.Rows) != 1 || reply.Rows[0].RunID != live {
		t.Fatalf("%+v, %v", reply.Rows, err)
	}
}
