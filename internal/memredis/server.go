package memredis

import (
	"context"
	"net"
	"sync"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Addr is the address that the clients of a [Server] show. Nothing listens
// there. It is an IP because a host name would start Go's DNS resolver, whose
// goroutine belongs to no testing/synctest bubble.
const Addr = "127.0.0.1:1"

// Server is an empty Redis in this process. Its clock, and with it TIME and
// every expiry, is [time.Now]: inside a testing/synctest bubble it is the
// bubble's, provided that Open was called there too.
//
// Its methods may be called from several goroutines.
type Server struct {
	engine *miniredis.Miniredis
	links  sync.WaitGroup

	mu      sync.Mutex
	clients []redis.UniversalClient
}

// Open starts a server. End it with [Server.Close].
func Open() *Server {
	engine := miniredis.NewMiniRedis()
	// Left alone, miniredis expires keys only when a test says so.
	engine.ClockTTL(true)
	return &Server{engine: engine}
}

// Client returns a new client of this server, with its own connections. Close
// closes it, if the caller has not.
func (s *Server) Client() redis.UniversalClient {
	client := redis.NewClient(&redis.Options{
		Addr:                  Addr,
		Dialer:                s.dial,
		ContextTimeoutEnabled: true,
		DisableIdentity:       true, // miniredis knows no CLIENT SETINFO
		MaintNotificationsConfig: &maintnotifications.Config{
			Mode: maintnotifications.ModeDisabled,
		},
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients = append(s.clients, client)
	return client
}

// Engine returns the miniredis underneath, for tests that set its clock or
// inject its errors.
func (s *Server) Engine() *miniredis.Miniredis { return s.engine }

// Close closes the clients, then the server, and drops what it held. Closing
// twice is harmless.
func (s *Server) Close() {
	s.mu.Lock()
	clients := s.clients
	s.clients = nil
	s.mu.Unlock()
	for _, client := range clients {
		_ = client.Close() // its only error says that the caller closed it before
	}
	s.engine.Close()
	s.links.Wait()
}

func (s *Server) dial(context.Context, string, string) (net.Conn, error) {
	inner, err := s.engine.Dial()
	if err != nil {
		return nil, err
	}
	client, outer := net.Pipe()
	s.links.Go(func() { link(outer, inner) })
	return client, nil
}
