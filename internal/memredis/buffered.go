package memredis

import (
	"net"
	"sync"
	"time"
)

// buffered is a connection whose Write never waits for the other side.
//
// A net.Pipe has no buffer, and a client sends a whole pipeline before it reads
// the first reply. Miniredis answers each command before it reads on, so from a
// few kilobytes on the two would wait for each other for ever.
type buffered struct {
	net.Conn

	mu     sync.Mutex
	queue  []byte
	err    error         // of the last write; sticks
	filled chan struct{} // holds one token while queue may be non-empty
	closed chan struct{}
	once   sync.Once
}

func newBuffered(conn net.Conn) *buffered {
	b := &buffered{
		Conn:   conn,
		filled: make(chan struct{}, 1),
		closed: make(chan struct{}),
	}
	go b.pump()
	return b
}

// Write queues a copy of p. It reports the error of an earlier write.
func (b *buffered) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return 0, b.err
	}
	b.queue = append(b.queue, p...)
	select {
	case b.filled <- struct{}{}:
	default:
	}
	return len(p), nil
}

// Close ends the pump and closes the connection. What is still queued is
// dropped, as it would be when a socket is cut.
func (b *buffered) Close() error {
	b.once.Do(func() { close(b.closed) })
	b.fail(net.ErrClosed)
	return b.Conn.Close()
}

// SetDeadline applies to reads only: writes do not wait.
func (b *buffered) SetDeadline(t time.Time) error { return b.SetReadDeadline(t) }

// SetWriteDeadline does nothing: writes do not wait, and a deadline must not
// cut the pump in the middle of a command.
func (b *buffered) SetWriteDeadline(time.Time) error { return nil }

func (b *buffered) pump() {
	for {
		select {
		case <-b.filled:
		case <-b.closed:
			return
		}
		b.mu.Lock()
		p := b.queue
		b.queue = nil
		b.mu.Unlock()
		if _, err := b.Conn.Write(p); err != nil {
			b.fail(err)
			return
		}
	}
}

func (b *buffered) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
	}
}
