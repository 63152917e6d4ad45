package testredis_test

import (
	"strings"
	"testing"

	"github.com/umbelhq/umbel/internal/testredis"
)

func TestKillKeepsWhatTheLogKept(t *testing.T) {
	t.Parallel()
	ctx := t.Context()

	durable := testredis.Real(t, testredis.AppendOnly("always"))
	if err := durable.Client.Set(ctx, "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	durable.Kill(t)
	if err := durable.Client.Ping(ctx).Err(); err == nil {
		t.Fatal("a killed Redis answers")
	}
	durable.Restart(t)
	if got, err := durable.Client.Get(ctx, "k").Result(); err != nil || got != "v" {
		t.Errorf("after kill -9 with appendfsync always: %q, %v; want v", got, err)
	}

	forgetful := testredis.Real(t)
	if err := forgetful.Client.Set(ctx, "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	forgetful.Restart(t)
	if n, err := forgetful.Client.DBSize(ctx).Result(); err != nil || n != 0 {
		t.Errorf("after kill -9 without persistence: %d keys, %v; want none", n, err)
	}
}

func TestMaxMemoryAndConfig(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r := testredis.Real(t, testredis.MaxMemory(1<<18)) // less than an empty Redis takes
	set := func() error { return r.Client.Set(ctx, "k", "v", 0).Err() }

	if err := set(); err == nil || !strings.HasPrefix(err.Error(), "OOM ") {
		t.Errorf("a write to a full Redis: %v; want OOM", err)
	}
	r.Config(t, "maxmemory", "0")
	if err := set(); err != nil {
		t.Errorf("a write after CONFIG SET maxmemory 0: %v", err)
	}
}

func TestBadDirectiveSaysWhy(t *testing.T) {
	t.Parallel()
	_, err := testredis.Launch(t.Context(), "no-such-directive", "yes")
	if err == nil || !strings.Contains(err.Error(), "no-such-directive") {
		t.Errorf("error %v; want the server's own words", err)
	}
}
