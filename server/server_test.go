package server_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/testredis"
	"github.com/umbelhq/umbel/server"
)

// A server that finds nothing founds an installation; one that finds it joins. The caller's client stays open.
func TestOpen(t *testing.T) {
	testredis.Each(t, func(t *testing.T, r *testredis.Redis) {
		t.Parallel()
		first, err := server.Open(t.Context(), r.Client, server.Config{Prefix: r.Prefix, Shards: 4})
		if err != nil {
			t.Fatal(err)
		}
		if first.Lease() != umbel.DefaultLease {
			t.Errorf("lease is %v", first.Lease())
		}
		second, err := server.Open(t.Context(), r.Client, server.Config{Prefix: r.Prefix})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(first.Close(), second.Close()); err != nil {
			t.Error(err)
		}
		if err := r.Client.Ping(t.Context()).Err(); err != nil {
			t.Error(err)
		}
	})
}

// The context of Open bounds Open alone: the server lives on when it ends.
func TestOpenOutlivesItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := testredis.Mini(t)
		ctx, cancel := context.WithCancel(t.Context())
		e, err := server.Open(ctx, r.Client, server.Config{})
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		synctest.Wait()
		if _, err := e.Commit(t.Context(), umbel.CommitRequest{Namespace: "n", WorkflowID: "w"}); err != nil {
			t.Error(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A Redis that is not there is unavailable, not a hang and not a panic.
func TestOpenWithoutRedis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := testredis.Mini(t)
		_ = r.Client.Close()
		_, err := server.Open(t.Context(), r.Client, server.Config{})
		if !errors.Is(err, umbel.ErrUnavailable) {
			t.Errorf("%v", err)
		}
	})
}
