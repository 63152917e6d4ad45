package stack

import (
	"context"
	"net/http"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/internal/memnet"
	"github.com/umbelhq/umbel/server"
)

// remote serves a network in memory with a server, and returns the way to it.
func (s *stack) remote(srv *server.Server, h2 bool) umbel.Engine {
	s.t.Helper()
	const address = "umbel:7890"
	var n memnet.Network
	l, err := n.Listen(address)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(s.t.Context()))
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := srv.Serve(ctx, l); err != nil {
			s.t.Error(err)
		}
	}()
	p := new(http.Protocols)
	p.SetHTTP1(!h2)
	p.SetUnencryptedHTTP2(h2)
	tr := &http.Transport{DialContext: n.DialContext, Protocols: p, DisableCompression: true}
	c, err := client.Dial(address, client.HTTPClient(&http.Client{Transport: tr}))
	if err != nil {
		s.t.Fatal(err)
	}
	s.atEnd(func() {
		stop()
		<-served
		tr.CloseIdleConnections()
	})
	return c
}
