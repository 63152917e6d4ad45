package memnet_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel/internal/memnet"
)

func listen(t *testing.T, n *memnet.Network, address string) net.Listener {
	t.Helper()
	l, err := n.Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	var n memnet.Network
	_, err := n.DialContext(t.Context(), "tcp", "a:1")
	if op, ok := errors.AsType[*net.OpError](err); !ok || op.Op != "dial" || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("without a listener: %v", err)
	}
	l := listen(t, &n, "a:1")
	if _, err := n.Listen("a:1"); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a second listener: %v", err)
	}
	if l.Addr().String() != "a:1" {
		t.Errorf("the address is %v", l.Addr())
	}
	waiting, err := n.DialContext(t.Context(), "tcp", "a:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := l.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed again: %v", err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept of a closed one: %v", err)
	}
	if _, err := waiting.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("a connection that nobody accepted: %v", err)
	}
	listen(t, &n, "a:1") // the address is free again
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := n.DialContext(ended, "tcp", "a:1"); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
}

// HTTP/1.1 and HTTP/2 work in virtual time, and a listener that accepts nothing looks like a stopped process.
func TestHTTPInVirtualTime(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*http.Protocols){
		"http1": func(p *http.Protocols) { p.SetHTTP1(true) },
		"h2c":   func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n memnet.Network
				protocols := new(http.Protocols)
				set(protocols)
				srv := &http.Server{
					Protocols: protocols, ReadHeaderTimeout: time.Minute,
					Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
						time.Sleep(time.Minute)
						_, _ = io.WriteString(w, "late")
					}),
				}
				l := listen(t, &n, "a:1")
				go func() { _ = srv.Serve(l) }()
				listen(t, &n, "stopped:1")
				tr := &http.Transport{DialContext: n.DialContext, Protocols: protocols}
				c := &http.Client{Transport: tr, Timeout: 2 * time.Minute}
				began := time.Now()
				r, err := c.Get("http://a:1")
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(r.Body)
				_ = r.Body.Close()
				if string(body) != "late" || err != nil || time.Since(began) != time.Minute {
					t.Errorf("%q, %v after %v", body, err, time.Since(began))
				}
				if _, err := c.Get("http://stopped:1"); err == nil || time.Since(began) != 3*time.Minute { //nolint:bodyclose // there is none
					t.Errorf("a stopped server: %v after %v", err, time.Since(began))
				}
				tr.CloseIdleConnections()
				_ = srv.Close()
			})
		})
	}
}
