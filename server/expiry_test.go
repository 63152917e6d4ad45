package server_test

import (
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/testredis"
)

// Nothing of an open run expires: not what was staged call by call, not what claims, failures and results add.
func TestPromise16NothingOfAnOpenRunExpires(t *testing.T) {
	t.Parallel()
	const ns, id = umbel.DefaultNamespace, umbel.WorkflowID("open")
	r := testredis.Shared(t)
	s := serve(t, r)
	b, err := s.Begin(t.Context(), umbel.BeginRequest{Namespace: ns, WorkflowID: id})
	if err != nil {
		t.Fatal(err)
	}
	rows := []umbel.StagedRow{{Type: "a"}, {Type: "a", Delay: time.Hour}, {Type: "a", Node: "n"}, {Type: "a", Key: "k"}}
	for i := range rows {
		_, err := s.Stage(t.Context(), umbel.StageRequest{
			Namespace: ns, WorkflowID: id, StagingID: b.StagingID, Offset: int64(i), Rows: rows[i : i+1],
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := expiring(t, r); n == 0 {
		t.Error("what is staged does not expire: the check below could not fail")
	}
	_, err = s.Commit(t.Context(), umbel.CommitRequest{Namespace: ns, WorkflowID: id, StagingID: b.StagingID, Scheduled: int64(len(rows))})
	if err != nil {
		t.Fatal(err)
	}
	outcomes := []umbel.ReportItem{
		{Outcome: umbel.OutcomeCompleted},
		{Outcome: umbel.OutcomeFailed, Failure: &umbel.Failure{Type: "f"}, RetryAfter: time.Hour},
	}
	for _, it := range outcomes {
		reply, err := s.Poll(t.Context(), umbel.PollRequest{
			Namespace: ns, TaskQueue: umbel.DefaultTaskQueue, Types: []string{"a"}, Worker: "w", MaxRows: 1, Wait: 10 * time.Second,
		})
		if err != nil || len(reply.Rows) != 1 {
			t.Fatal(reply, err)
		}
		if n := expiring(t, r); n != 0 {
			t.Errorf("%d keys expire while a row is claimed", n)
		}
		it.Token = reply.Rows[0].Token
		if _, err := s.Report(t.Context(), umbel.ReportRequest{Namespace: ns, Worker: "w", Items: []umbel.ReportItem{it}}); err != nil {
			t.Fatal(err)
		}
	}
	if n := expiring(t, r); n != 0 {
		t.Errorf("%d keys of an open run expire", n)
	}
}

// expiring counts the keys of the installation that have a time to live.
func expiring(t *testing.T, r *testredis.Redis) (n int) {
	t.Helper()
	keys, err := r.Client.Keys(t.Context(), r.Prefix+":*").Result()
	if err != nil || len(keys) == 0 {
		t.Fatalf("keys: %d, %v", len(keys), err)
	}
	for _, k := range keys {
		ttl, err := r.Client.PTTL(t.Context(), k).Result()
		if err != nil {
			t.Fatal(err)
		}
		if ttl >= 0 {
			n++
		}
	}
	return n
}
