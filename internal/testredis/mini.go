package testredis

import (
	"testing"

	"github.com/alicebob/miniredis/v2"

	"github.com/umbelhq/umbel/internal/memredis"
)

// Mini returns an empty miniredis behind in-memory pipes. Its TIME and its
// expiries follow [time.Now]. Called inside a testing/synctest bubble, with the
// bubble's t, it lives and ends there and its clock is the bubble's.
func Mini(t testing.TB) *Redis {
	t.Helper()
	server := memredis.Open()
	t.Cleanup(server.Close)
	return &Redis{
		Client: server.Client(),
		Addr:   memredis.Addr,
		Kind:   KindMini,
		Prefix: newPrefix(),
		mini:   server,
	}
}

// Engine returns the miniredis under a handle from [Mini], to set its clock or
// inject its errors. It fails the test on any other Redis.
func (r *Redis) Engine(t testing.TB) *miniredis.Miniredis {
	t.Helper()
	if r.mini == nil {
		t.Fatalf("testredis: a %s Redis has no miniredis", r.Kind)
	}
	return r.mini.Engine()
}
