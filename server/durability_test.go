package server_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/testredis"
	"github.com/umbelhq/umbel/server"
)

// The first line of a server's log says what survives.
func TestPromise18DurabilityIsSaid(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]*testredis.Redis{
		"durability=always":   testredis.Real(t, testredis.AppendOnly("always")),
		"durability=everysec": testredis.Real(t, testredis.AppendOnly("everysec")),
		"durability=none":     testredis.Real(t),
	} {
		if got := firstLine(t, r); !strings.Contains(got, want) {
			t.Errorf("%q does not say %s", got, want)
		}
	}
	forbidden := testredis.Real(t, testredis.AppendOnly("always"))
	if err := forbidden.Client.ACLSetUser(t.Context(), "default", "-config").Err(); err != nil {
		t.Fatal(err)
	}
	if got := firstLine(t, forbidden); !strings.Contains(got, `durability="append-only file"`) {
		t.Errorf("without CONFIG: %q", got)
	}
	if got := firstLine(t, testredis.Mini(t)); !strings.Contains(got, "durability=none") {
		t.Errorf("in memory: %q", got)
	}
}

func firstLine(t *testing.T, r *testredis.Redis) string {
	t.Helper()
	var log bytes.Buffer
	s, err := server.Open(context.Background(), r.Client, server.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(log.String(), "\n")
	return line
}

// A Redis that evicts keys loses work: that is said at the start.
func TestEvictionIsWarnedOf(t *testing.T) {
	t.Parallel()
	for policy, warned := range map[string]bool{"allkeys-lru": true, "noeviction": false} {
		r := testredis.Real(t, testredis.MaxMemory(100<<20), testredis.Directive("maxmemory-policy", policy))
		var log bytes.Buffer
		s, err := server.Open(context.Background(), r.Client, server.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(log.String(), "evicts keys"); got != warned {
			t.Errorf("%s: warned %t\n%s", policy, got, log.String())
		}
	}
	if _, err := server.Open(context.Background(), nil, server.Config{}); !errors.Is(err, umbel.ErrInvalid) {
		t.Errorf("without a client: %v", err)
	}
}
