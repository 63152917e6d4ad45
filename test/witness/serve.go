package witness

import (
	"context"
	"log/slog"
	"net"
	"os/exec"
	"testing"

	"github.com/umbelhq/umbel/internal/testredis"
	"github.com/umbelhq/umbel/server"
)

// Serve opens a server of a configuration on r, without a log, and serves it on a free port until the test ends. It
// returns host and port.
func Serve(t *testing.T, r *testredis.Redis, cfg server.Config) string {
	t.Helper()
	cfg.Prefix, cfg.Logger = r.Prefix, slog.New(slog.DiscardHandler)
	engine, err := server.Open(t.Context(), r.Client, cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- engine.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		_ = engine.Close()
	})
	return l.Addr().String()
}

// Program returns the path of a program that a test needs. The test fails without it, it does not skip.
func Program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("this test needs %s: run scripts/need-tools, which installs it or says how (%v)", name, err)
	}
	return path
}
