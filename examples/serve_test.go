package examples_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/internal/testredis"
	"github.com/umbelhq/umbel/server"
	"github.com/umbelhq/umbel/test/witness"
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
	addr = witness.Serve(t, testredis.Mini(t), server.Config{Lease: lease})
	conn, err := client.Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if admin, err = client.NewAdmin(conn, client.Config{Logger: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	return addr, admin
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
