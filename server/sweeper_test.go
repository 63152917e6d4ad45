package server_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/keys"
	"github.com/umbelhq/umbel/internal/testredis"
)

// A claim whose record is damaged cannot lapse. It keeps no other from that.
func TestDamagedClaimKeepsNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := testredis.Mini(t)
		s := serve(t, r)
		poll := umbel.PollRequest{
			Namespace: umbel.DefaultNamespace, TaskQueue: umbel.DefaultTaskQueue, Types: []string{"a"}, Worker: "w", MaxRows: 1,
			Wait: 5 * time.Second,
		}
		for _, id := range []umbel.WorkflowID{"damaged", "whole"} {
			commit(t, s, id)
			got, err := s.Poll(t.Context(), poll)
			if err != nil || len(got.Rows) != 1 || got.Rows[0].WorkflowID != id {
				t.Fatalf("%+v, %v", got.Rows, err)
			}
			if id == "damaged" {
				nonce := strings.Split(string(got.Rows[0].Token), ".")[6]
				leases := keys.New(r.Prefix, 1).Shard(0).Leases()
				if n, err := r.Client.HSet(t.Context(), leases, nonce, "1 damaged").Result(); err != nil || n != 0 {
					t.Fatalf("%d new fields, %v", n, err)
				}
			}
		}
		time.Sleep(umbel.DefaultLease)
		got, err := s.Poll(t.Context(), poll)
		if err != nil || len(got.Rows) != 1 || got.Rows[0].WorkflowID != "whole" || got.Rows[0].Attempt != 2 {
			t.Fatalf("%+v, %v", got.Rows, err)
		}
	})
}
