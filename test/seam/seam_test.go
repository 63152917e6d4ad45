package seam

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"

	"connectrpc.com/connect"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/internal/enginetest"
	"github.com/umbelhq/umbel/internal/memnet"
	"github.com/umbelhq/umbel/internal/remote"
	"github.com/umbelhq/umbel/internal/testredis"
	"github.com/umbelhq/umbel/outbox/outboxtest"
	"github.com/umbelhq/umbel/server"
)

// way is a way from the SDK to a server.
type way struct {
	name string
	h2   bool
	dial func(t *testing.T, tr *http.Transport, urls string) umbel.Engine
}

// transport calls over a network in memory.
func transport(n *memnet.Network, h2 bool) *http.Transport {
	p := new(http.Protocols)
	p.SetHTTP1(!h2)
	p.SetUnencryptedHTTP2(h2)
	return &http.Transport{DialContext: n.DialContext, Protocols: p, DisableCompression: true, MaxIdleConnsPerHost: 100}
}

func dial(t *testing.T, tr *http.Transport, urls string) umbel.Engine {
	t.Helper()
	t.Cleanup(tr.CloseIdleConnections)
	c, err := client.Dial(urls, client.HTTPClient(&http.Client{Transport: tr}))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var ways = []way{
	{"http1", false, dial},
	{"h2c", true, dial},
	{"grpc", true, func(t *testing.T, tr *http.Transport, urls string) umbel.Engine {
		t.Helper()
		t.Cleanup(tr.CloseIdleConnections)
		return remote.New([]string{urls}, &http.Client{Transport: tr}, connect.WithGRPC())
	}},
}

// node is a server that serves an address of a network, until the test ends or it is stopped.
type node struct {
	*server.Server

	stop context.CancelFunc // Serve drains
	done chan struct{}
	err  error // of Serve, once done is closed
}

// serve opens a server and serves address.
func serve(t *testing.T, r *testredis.Redis, n *memnet.Network, address string, log *slog.Logger) *node {
	t.Helper()
	s, err := server.Open(t.Context(), r.NewClient(t), server.Config{Prefix: r.Prefix, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	l, err := n.Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, s, l)
}

// serveOn serves a listener with s.
func serveOn(t *testing.T, s *server.Server, l net.Listener) *node {
	t.Helper()
	x := &node{Server: s, done: make(chan struct{})}
	var ctx context.Context
	ctx, x.stop = context.WithCancel(context.WithoutCancel(t.Context()))
	go func() {
		defer close(x.done)
		x.err = s.Serve(ctx, l)
	}()
	t.Cleanup(x.end)
	return x
}

// end stops serving, and closes the server.
func (x *node) end() {
	x.stop()
	<-x.done
	_ = x.Close()
}

const address = "umbel:7890"

// engines opens a server, and w as the way to it.
func engines(t *testing.T, r *testredis.Redis, w way, test func(t *testing.T, e enginetest.Engines)) {
	t.Helper()
	var n memnet.Network
	s := serve(t, r, &n, address, slog.New(slog.DiscardHandler))
	e := enginetest.Engines{Tested: s.Server, Direct: s.Server}
	tr := transport(&n, w.h2)
	if w.dial != nil {
		e.Tested = w.dial(t, tr, "http://"+address)
	}
	test(t, e)
	tr.CloseIdleConnections() // a server waits a second for those of HTTP/2
	s.end()
	check(t, r)
}

// check wants the stored state to be sound.
func check(t *testing.T, r *testredis.Redis) {
	t.Helper()
	if err := outboxtest.CheckRedis(t, r.Client, r.Prefix); err != nil {
		t.Error("stored state:", err)
	}
}

// The seam keeps its contract in process and over the network, in virtual time.
func TestEngine(t *testing.T) {
	for _, w := range append([]way{{name: "process"}}, ways...) {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			enginetest.Run(t, func(t *testing.T, test func(*testing.T, enginetest.Engines)) {
				synctest.Test(t, func(t *testing.T) { engines(t, testredis.Mini(t), w, test) })
			})
		})
	}
}

// The same on a real Redis and, over HTTP/1.1, on a cluster of three masters.
func TestEngineOnRedis(t *testing.T) {
	t.Parallel()
	for _, w := range append([]way{{name: "process"}}, ways...) {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			enginetest.Run(t, func(t *testing.T, test func(*testing.T, enginetest.Engines)) {
				engines(t, testredis.Shared(t), w, test)
			})
		})
	}
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		enginetest.Run(t, func(t *testing.T, test func(*testing.T, enginetest.Engines)) {
			engines(t, testredis.Cluster(t), ways[0], test)
		})
	})
}
