package examples_test

import (
	"context"
	"log/slog"
	"net"
	"os/exec"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/internal/testredis"
	"github.com/umbelhq/umbel/server"
)

// Leases of the servers that the tests start. A killed worker is waited for so long; one that lives must never lose
// its rows, however busy the machine is.
const (
	shortLease = 4 * time.Second
	longLease  = time.Minute
)

// serve runs a server until the test ends, and returns its address and what a user at a keyboard has.
func serve(t *testing.T, lease time.Duration) (addr string, admin *client.Admin) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	engine, err := server.Open(t.Context(), testredis.Mini(t).Client, server.Config{Lease: lease, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- engine.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		engine.Close()
	})
	conn, err := client.Dial(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if admin, err = client.NewAdmin(conn, client.Config{Logger: log}); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String(), admin
}

// start starts a fan-out of texts.
func start(t *testing.T, admin *client.Admin, spec client.StartSpec, texts ...string) {
	t.Helper()
	items := func(yield func(umbel.Payload, error) bool) {
		for _, s := range texts {
			if !yield(umbel.Payload{ContentType: "text/plain", Data: []byte(s)}, nil) {
				return
			}
		}
	}
	if _, err := admin.Start(t.Context(), spec, items); err != nil {
		t.Fatal(err)
	}
}

// outcomes waits for a run's close and returns its results by ordinal.
func outcomes(t *testing.T, admin *client.Admin, id umbel.WorkflowID) []umbel.Result[umbel.Payload] {
	t.Helper()
	var all []umbel.Result[umbel.Payload]
	for r, err := range admin.Results(t.Context(), id, client.ResultsQuery{Follow: true, Ordered: true}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// must returns the path of a program that the tests need. They fail without it, they do not skip.
func must(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("this test needs %s: run scripts/need-tools, which installs it or says how (%v)", name, err)
	}
	return path
}
