package server_test

import (
	"errors"
	"testing"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/testredis"
)

// A start whose client sends no digest is compared by one that the server makes of what it received.
func TestPromise2WithoutDigest(t *testing.T) {
	t.Parallel()
	s := serve(t, testredis.Shared(t))
	commit := func(input string, types ...umbel.TypePolicy) (umbel.CommitReply, error) {
		return s.Commit(t.Context(), umbel.CommitRequest{
			Namespace: umbel.DefaultNamespace, WorkflowID: "no digest", Scheduled: 1, Types: types,
			Rows: []umbel.StagedRow{{Type: "a", Input: umbel.Payload{Data: []byte(input)}}},
		})
	}
	first, err := commit("x")
	if err != nil || first.Attached {
		t.Fatalf("%+v, %v", first, err)
	}
	if again, err := commit("x"); err != nil || !again.Attached || again.RunID != first.RunID {
		t.Errorf("the same: %+v, %v", again, err)
	}
	if other, err := commit("y"); !errors.Is(err, umbel.ErrAlreadyExists) {
		t.Errorf("another input: %+v, %v", other, err)
	}
	policy := umbel.TypePolicy{Type: "a", Retry: umbel.RetryPolicy{MaxAttempts: 3}}
	if other, err := commit("x", policy); !errors.Is(err, umbel.ErrAlreadyExists) {
		t.Errorf("another policy: %+v, %v", other, err)
	}
}
