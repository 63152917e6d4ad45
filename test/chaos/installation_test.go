package chaos_test

import (
	"context"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/internal/testredis"
	"github.com/umbelhq/umbel/test/witness"
)

// installation is a Redis with AOF always, two servers on it, and three workers that know both.
type installation struct {
	t       *testing.T
	redis   *testredis.Redis
	lease   time.Duration
	addrs   [2]string
	command []string // what workers run

	servers [2]*witness.Process
	workers [3]*witness.Process
}

func install(t *testing.T, lease time.Duration, command ...string) *installation {
	t.Helper()
	in := installServers(t, lease)
	in.command = command
	for i := range in.workers {
		in.startWorker(i)
	}
	return in
}

// installServers is install without workers.
func installServers(t *testing.T, lease time.Duration) *installation {
	t.Helper()
	in := &installation{t: t, redis: testredis.Real(t, testredis.AppendOnly("always")), lease: lease}
	for i := range in.addrs {
		in.addrs[i] = freeAddr(t)
		in.startServer(i)
	}
	for i := range in.servers {
		in.ready(i)
	}
	return in
}

// freeAddr returns an address that nobody listens on.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// servers' addresses, as a list.
func (in *installation) addr() string { return strings.Join(in.addrs[:], ",") }

func (in *installation) startServer(i int) {
	in.servers[i] = witness.Start(in.t, exec.Command(umbel, "server", "--redis", in.redis.URL, "--lease", in.lease.String(), "--listen", in.addrs[i]))
}

// ready waits until a server answers.
func (in *installation) ready(i int) {
	in.t.Helper()
	deadline := time.Now().Add(witness.Patience)
	for {
		ctx, cancel := context.WithTimeout(in.t.Context(), time.Second)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+in.addrs[i]+"/healthz", nil)
		if err != nil {
			in.t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		cancel()
		if err == nil {
			_ = res.Body.Close()
			return
		}
		select {
		case <-in.servers[i].Gone:
			in.t.Fatalf("server %d has ended (%v): %s", i, in.servers[i].Err, witness.Tail(in.servers[i].Stderr.String()))
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			in.t.Fatalf("server %d does not answer: %v; it said\n%s", i, err, witness.Tail(in.servers[i].Stderr.String()))
		}
	}
}

func (in *installation) startWorker(i int) {
	args := append([]string{"worker", "--addr", in.addr(), "--concurrency", "8", "--"}, in.command...)
	in.workers[i] = witness.Start(in.t, exec.Command(umbel, args...))
}

// connect returns a client of both servers.
func (in *installation) connect() *client.Client {
	in.t.Helper()
	conn, err := client.Dial(in.addr())
	if err != nil {
		in.t.Fatal(err)
	}
	in.t.Cleanup(func() { _ = conn.Close() })
	c, err := client.New(conn, client.Config{})
	if err != nil {
		in.t.Fatal(err)
	}
	return c
}
