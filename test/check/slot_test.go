package check

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/umbelhq/umbel/server"
)

// slot is an address and the server that is there, if any.
type slot struct {
	w       *world
	address string

	turn   chan struct{} // full while one opens or ends it; who waits for a mutex would keep the bubble's time from moving
	mu     sync.Mutex
	way    *link
	srv    *server.Server
	listen net.Listener
	cancel context.CancelFunc
	served chan struct{}
}

// open starts a server, however often Redis fails it meanwhile.
func (s *slot) open() {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if s.srv != nil {
		return
	}
	way := &link{w: s.w}
	rdb := s.w.redis.Client()
	rdb.AddHook(way)
	s.mu.Lock()
	s.way = way
	s.mu.Unlock()
	for {
		var err error
		if s.srv, err = server.Open(s.w.t.Context(), rdb, server.Config{Shards: s.w.Shards, Lease: lease, Logger: quiet}); err == nil {
			break
		}
		if s.w.t.Context().Err() != nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	var err error
	if s.listen, err = s.w.net.Listen(s.address); err != nil {
		s.w.t.Error(err)
		return
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.w.t.Context()))
	s.cancel, s.served = cancel, make(chan struct{})
	go func() {
		defer close(s.served)
		_ = s.srv.Serve(ctx, s.listen) // a killed one has an error
	}()
}

// link is the server's way to Redis.
func (s *slot) link() *link {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.way
}

// stop ends the server as an operator does.
func (s *slot) stop() {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if s.srv == nil {
		return
	}
	s.cancel()
	<-s.served
	_ = s.srv.Close()
	s.link().cut()
	s.srv = nil
}

// kill ends the server as a power cut does: from one moment on it reaches neither Redis nor its callers.
func (s *slot) kill() {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if s.srv == nil {
		return
	}
	s.link().die()
	_ = s.listen.Close() // Serve then breaks its connections
	<-s.served
	_ = s.srv.Close()
	s.cancel()
	s.srv = nil
}
