package remote_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/memnet"
	"github.com/umbelhq/umbel/internal/remote"
	"github.com/umbelhq/umbel/server"
)

// fake is an engine that answers Begin with its name, unless it fails.
type fake struct {
	umbel.Engine

	name  umbel.StagingID
	err   error
	calls atomic.Int64
}

func (f *fake) Begin(context.Context, umbel.BeginRequest) (umbel.BeginReply, error) {
	f.calls.Add(1)
	return umbel.BeginReply{StagingID: f.name}, f.err
}

func (f *fake) Poll(ctx context.Context, _ umbel.PollRequest) (umbel.PollReply, error) {
	f.calls.Add(1)
	<-ctx.Done()
	return umbel.PollReply{}, &umbel.Error{Code: umbel.CodeUnavailable, Err: ctx.Err()}
}

// site is a network and the engine to test, whose servers are a:1 and b:1.
type site struct {
	*testing.T

	net memnet.Network
	e   *remote.Engine
}

func inSite(t *testing.T, urls []string, test func(s *site)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &site{T: t}
		tr := &http.Transport{DialContext: s.net.DialContext}
		s.e = remote.New(urls, &http.Client{Transport: tr})
		defer tr.CloseIdleConnections()
		test(s)
	})
}

// serve serves an address until stop is called, or the test ends.
func (s *site) serve(address string, h http.Handler) (stop func()) {
	s.Helper()
	l := s.listen(address)
	srv := &http.Server{Handler: h, ReadHeaderTimeout: time.Hour}
	go func() { _ = srv.Serve(l) }()
	s.Cleanup(func() { _ = srv.Close() })
	return func() { _ = srv.Close() }
}

func (s *site) listen(address string) net.Listener {
	s.Helper()
	l, err := s.net.Listen(address)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = l.Close() })
	return l
}

func (s *site) begin() (umbel.StagingID, error) {
	r, err := s.e.Begin(s.Context(), umbel.BeginRequest{Namespace: "n", WorkflowID: "w"})
	return r.StagingID, err
}

// from wants the next call to be answered by a server.
func (s *site) from(name umbel.StagingID) {
	s.Helper()
	if got, err := s.begin(); got != name || err != nil {
		s.Errorf("answered by %q, %v; want %q", got, err, name)
	}
}

// fails wants a call to fail as unavailable; the error must hold texts.
func (s *site) fails(notApplied bool, texts ...string) {
	s.Helper()
	_, err := s.begin()
	if !errors.Is(err, umbel.ErrUnavailable) || umbel.SafeToRetry(err) != notApplied {
		s.Errorf("%v, safe to retry: %t, want %t", err, umbel.SafeToRetry(err), notApplied)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			s.Errorf("%v does not say %q", err, text)
		}
	}
}

var two = []string{"http://a:1", "http://b:1"}

// answering reads the request first: on connections without a buffer the client may fail at sending it else.
func answering(status int, contentType, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
}

// Whatever is wrong with one server, calls go on at the other, and stay there.
func TestFailover(t *testing.T) {
	t.Parallel()
	unavailable := &umbel.Error{Code: umbel.CodeUnavailable, Reason: "the server is stopping", NotApplied: true}
	cut := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	for _, c := range []struct {
		name    string
		start   func(s *site) // of a:1
		applied bool          // possibly, when b:1 is away too
		took    time.Duration
		says    string
	}{
		{"refuses connections", func(*site) {}, false, 0, "connection refused"},
		{"hangs", func(s *site) { s.listen("a:1") }, true, 15 * time.Second, "did not answer within 15s"},
		{"answers 503", func(s *site) { s.serve("a:1", answering(503, "text/html", "<html>")) }, true, 0, "503"},
		{"answers 502", func(s *site) { s.serve("a:1", answering(502, "text/html", "<html>")) }, true, 0, "502"},
		{"drains", func(s *site) { s.serve("a:1", server.NewHandler(&fake{err: unavailable})) }, false, 0, "the server is stopping"},
		{"breaks the connection", func(s *site) { s.serve("a:1", cut) }, true, 0, "http://a:1 is not available"},
		{"breaks off its reply", func(s *site) {
			s.serve("a:1", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "application/proto")
				w.Header().Set("Content-Length", "100")
				_, _ = io.WriteString(w, "\x08")
			}))
		}, true, 0, "EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inSite(t, two, func(s *site) {
				c.start(s)
				stop := s.serve("b:1", server.NewHandler(&fake{name: "b"}))
				began := time.Now()
				for range 3 { // wherever it begins
					s.from("b")
				}
				if took := time.Since(began); took > c.took {
					s.Errorf("three calls took %v, want %v at most", took, c.took)
				}
				stop()
				s.fails(!c.applied, "http://a:1", "http://b:1", "none of the servers")
				only := remote.New(two[:1], &http.Client{Transport: &http.Transport{DialContext: s.net.DialContext, DisableKeepAlives: true}})
				s.e = only
				s.fails(!c.applied, c.says)
			})
		})
	}
}

// What is no Umbel server is no matter of waiting: the error says what is there.
func TestNoUmbelServer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		h      http.Handler
		target error
		says   string
	}{
		{"a web site", answering(200, "text/html", "<html>"), umbel.ErrUnsupported, "no Umbel server"},
		{"a JSON API", answering(200, "application/json", "{}"), umbel.ErrUnavailable, "http://a:1"},
		{"no such page", http.NotFoundHandler(), umbel.ErrUnsupported, "no Umbel server"},
		{"a login page", http.RedirectHandler("http://a:1/login", http.StatusFound), umbel.ErrUnavailable, "http://a:1"},
		{"unauthorized", answering(401, "text/plain", ""), umbel.ErrUnsupported, "refuses the caller"},
		{"forbidden", answering(403, "text/plain", ""), umbel.ErrUnsupported, "refuses the caller"},
		{"too large for a proxy", answering(413, "text/html", "<html>"), umbel.ErrLimit, "a proxy"},
		{"too many requests", answering(429, "text/html", ""), umbel.ErrUnavailable, "429"},
		{"a bug", answering(500, "application/json", `{"code":"internal","message":"boom"}`), umbel.ErrInternal, "boom"},
		{"another bug", answering(500, "text/html", "<html>"), umbel.ErrUnavailable, "500"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inSite(t, two[:1], func(s *site) {
				s.serve("a:1", c.h)
				_, err := s.begin()
				if !errors.Is(err, c.target) || !strings.Contains(err.Error(), c.says) {
					s.Errorf("%v, want %v that says %q", err, c.target, c.says)
				}
			})
		})
	}
}

// A server that stops in the middle of a wait is given up 15 s after its end.
func TestSilentPollEnds(t *testing.T) {
	t.Parallel()
	inSite(t, two[:1], func(s *site) {
		f := &fake{}
		s.serve("a:1", server.NewHandler(f))
		began := time.Now()
		_, err := s.e.Poll(s.Context(), umbel.PollRequest{Wait: umbel.MaxPollWait})
		if !errors.Is(err, umbel.ErrUnavailable) || !strings.Contains(err.Error(), "did not answer within 1m5s") {
			s.Error(err)
		}
		if took := time.Since(began); took != umbel.MaxPollWait+15*time.Second {
			s.Errorf("it took %v", took)
		}
	})
}

// When the caller's context ends, its error is in ours, whoever noticed first and whatever the servers do.
func TestContextEnds(t *testing.T) {
	t.Parallel()
	why := errors.New("enough")
	for name, start := range map[string]func(s *site){
		"answering": func(s *site) { s.serve("a:1", server.NewHandler(&fake{})) },
		"hanging":   func(s *site) { s.listen("a:1") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inSite(t, two, func(s *site) {
				start(s)
				s.listen("b:1")
				deadline, cancel := context.WithTimeoutCause(s.Context(), time.Second, why)
				defer cancel()
				plain, cancel2 := context.WithTimeout(s.Context(), time.Second)
				defer cancel2()
				for ctx, want := range map[context.Context]error{deadline: why, plain: context.DeadlineExceeded} {
					_, err := s.e.Poll(ctx, umbel.PollRequest{Wait: umbel.MaxPollWait})
					if !errors.Is(err, umbel.ErrUnavailable) || !errors.Is(err, want) {
						s.Errorf("%v, want one that wraps %v", err, want)
					}
				}
			})
		})
	}
}

// Each call tries each server once, however many calls move on at the same time.
func TestEachServerOnce(t *testing.T) {
	t.Parallel()
	inSite(t, two, func(s *site) {
		down := &umbel.Error{Code: umbel.CodeUnavailable}
		a, b := &fake{err: down}, &fake{err: down}
		s.serve("a:1", server.NewHandler(a))
		s.serve("b:1", server.NewHandler(b))
		const calls = 20
		ended := make(chan error, calls)
		for range calls {
			go func() {
				_, err := s.begin()
				ended <- err
			}()
		}
		for range calls {
			if err := <-ended; !errors.Is(err, umbel.ErrUnavailable) {
				s.Error(err)
			}
		}
		if a.calls.Load() != calls || b.calls.Load() != calls {
			s.Errorf("a was called %d times, b %d times, each must be %d", a.calls.Load(), b.calls.Load(), calls)
		}
	})
}
