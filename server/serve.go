package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/umbelhq/umbel"
)

// Bounds of a connection. A call may be held open for umbel.MaxPollWait; the rest is time to send and receive it.
const (
	headerTimeout  = 10 * time.Second
	callTimeout    = umbel.MaxPollWait + 70*time.Second // to read a request, and to write a reply
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 64 << 10
	// maxStreams bounds the calls of one HTTP/2 connection: a proxy may send all of its clients' through one.
	maxStreams = 1000
	// DrainTimeout is how long Serve waits, once its context has ended, for the calls that are under way. Polls and
	// waits end at once; the others take as long as Redis does.
	DrainTimeout = 10 * time.Second
)

// Serve serves clients and workers on l, over HTTP/1.1 and HTTP/2 without TLS (h2c), until ctx ends; then it drains and
// returns nil: no connection is accepted any more, polls are refused so that workers go to another server, waits
// answer with how things stand, and calls that are under way end, within [DrainTimeout]. What then still runs is cut
// off, and the error says so. Serve closes l. Call [Server.Close] when it has returned; a server that has drained serves
// no polls any more. If l fails, Serve returns its error.
//
// There is neither TLS nor authentication: listen where only those can connect who may, or put a proxy before it that
// lets calls last [umbel.MaxPollWait].
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	base := context.WithoutCancel(ctx)
	srv := &http.Server{
		Handler:           NewHandler(s),
		Protocols:         protocols,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       callTimeout,
		WriteTimeout:      callTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), // what peers do wrong, nobody here must act on
		BaseContext:       func(net.Listener) context.Context { return base },
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	select {
	case err := <-failed:
		return errors.Join(err, srv.Close())
	case <-ctx.Done():
	}
	s.drain()
	wait, cancel := context.WithTimeout(base, DrainTimeout)
	defer cancel()
	err := srv.Shutdown(wait)
	if err != nil {
		err = errors.Join(errors.New("server: calls were cut off that did not end in time"), err, srv.Close())
	}
	if e := <-failed; !errors.Is(e, http.ErrServerClosed) { // the listener failed in the same moment
		err = errors.Join(err, e)
	}
	return err
}

// drain ends what waits, and refuses polls from now on.
func (s *Server) drain() {
	s.draining.Do(func() { close(s.drained) })
}

// errDraining sends a worker to another server.
func errDraining() error {
	return &umbel.Error{Code: umbel.CodeUnavailable, Op: "poll", Reason: "the server is stopping", NotApplied: true}
}
