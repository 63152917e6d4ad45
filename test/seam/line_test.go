package seam

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/umbelhq/umbel/internal/memnet"
)

// lines are a client's connections, which may go deaf, and break.
type lines struct {
	net *memnet.Network

	mu    sync.Mutex
	open  []net.Conn
	deaf  chan struct{}
	isCut chan struct{}
	ended sync.WaitGroup
}

func newLines(n *memnet.Network) *lines {
	return &lines{net: n, deaf: make(chan struct{}), isCut: make(chan struct{})}
}

// dialContext connects through the lines.
func (l *lines) dialContext(ctx context.Context, network, address string) (net.Conn, error) {
	server, err := l.net.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	client, far := net.Pipe()
	l.mu.Lock()
	l.open = append(l.open, server, far)
	l.mu.Unlock()
	l.ended.Go(func() {
		_, _ = io.Copy(server, far)
		_ = server.Close()
	})
	l.ended.Go(func() {
		defer far.Close()
		for one := make([]byte, 1); ; { // byte by byte: what is not taken still waits in the server's write
			if _, err := io.ReadFull(server, one); err != nil {
				return
			}
			select {
			case <-l.deaf:
				<-l.isCut
				return
			default:
			}
			if _, err := far.Write(one); err != nil {
				return
			}
		}
	})
	return client, nil
}

// stopListening leaves what servers write from now on unread.
func (l *lines) stopListening() { close(l.deaf) }

// cut breaks all connections.
func (l *lines) cut() {
	close(l.isCut)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.open {
		_ = c.Close()
	}
}

// transport calls over the lines.
func (l *lines) transport(t *testing.T, h2 bool) *http.Transport {
	t.Helper()
	tr := transport(l.net, h2)
	tr.DialContext = l.dialContext
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		l.ended.Wait()
	})
	return tr
}
