// Package memnet is a network inside the process: listeners and connections without a port. For tests, above all in a
// bubble of testing/synctest, where real sockets keep time from moving.
//
// A connection has no buffer: a write returns once the other side has read it. Like with TCP, dialing needs a
// listener, but nobody who accepts: a stopped process looks the same.
package memnet

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
)

// Network is a set of addresses. The zero value is an empty one. It is safe for concurrent use.
type Network struct {
	mu        sync.Mutex
	listeners map[string]*listener
}

// backlog is how many connections wait to be accepted.
const backlog = 1024

// Listen returns a listener at address, which is any text. Closing it frees the address. It fails if the address is
// taken.
func (n *Network) Listen(address string) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[address] != nil {
		return nil, &net.OpError{Op: "listen", Net: netName, Addr: addr(address), Err: syscall.EADDRINUSE}
	}
	if n.listeners == nil {
		n.listeners = map[string]*listener{}
	}
	l := &listener{net: n, at: addr(address), conns: make(chan net.Conn, backlog), done: make(chan struct{})}
	n.listeners[address] = l
	return l, nil
}

// DialContext connects to the listener at address. It is refused where there is none, as TCP refuses: a *net.OpError
// whose Op is "dial".
func (n *Network) DialContext(ctx context.Context, _, address string) (net.Conn, error) {
	fail := func(err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: netName, Addr: addr(address), Err: err}
	}
	if ctx.Err() != nil {
		return fail(context.Cause(ctx))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.listeners[address]
	if l == nil {
		return fail(syscall.ECONNREFUSED)
	}
	near, far := net.Pipe()
	select {
	case l.conns <- far:
		return near, nil
	default:
		return fail(errors.New("too many connections wait to be accepted"))
	}
}

type listener struct {
	net   *Network
	at    addr
	conns chan net.Conn
	done  chan struct{}
}

// Accept returns the next connection.
func (l *listener) Accept() (net.Conn, error) {
	closed := &net.OpError{Op: "accept", Net: netName, Addr: l.at, Err: net.ErrClosed}
	select {
	case <-l.done:
		return nil, closed
	default:
	}
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, closed
	}
}

// Close frees the address and breaks the connections that nobody has accepted.
func (l *listener) Close() error {
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	if l.net.listeners[string(l.at)] != l {
		return &net.OpError{Op: "close", Net: netName, Addr: l.at, Err: net.ErrClosed}
	}
	delete(l.net.listeners, string(l.at))
	close(l.done)
	for {
		select {
		case c := <-l.conns:
			_ = c.Close()
		default:
			return nil
		}
	}
}

// Addr is the address that was listened at.
func (l *listener) Addr() net.Addr { return l.at }

const netName = "memory"

type addr string

func (addr) Network() string  { return netName }
func (a addr) String() string { return string(a) }
