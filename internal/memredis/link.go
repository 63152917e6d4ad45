package memredis

import (
	"net"
	"sync"
)

// link joins two connections, each the near end of a pipe, so that no write at
// either far end waits for the other to read. It returns once both are closed.
//
// A net.Pipe has no buffer, and miniredis relies on one, as a socket has. It
// answers each command before it reads on, while a client sends a whole pipeline
// before it reads the first reply: from a few kilobytes on the two would wait
// for each other for ever. And it publishes under its one lock: a subscriber
// that is slow to read would stop every client.
func link(a, b net.Conn) {
	var wg sync.WaitGroup
	wg.Go(func() { relay(a, b) })
	relay(b, a)
	wg.Wait()
}

// relay copies from src to dst through a queue, until either ends; then it
// closes both.
func relay(dst, src net.Conn) {
	q := queue{}
	q.filled.L = &q.mu
	var wg sync.WaitGroup
	wg.Go(func() {
		buf := make([]byte, 32<<10)
		for {
			n, err := src.Read(buf)
			q.put(buf[:n], err != nil)
			if err != nil {
				return
			}
		}
	})
	for {
		p, ok := q.take()
		if !ok {
			break
		}
		if _, err := dst.Write(p); err != nil {
			break // nobody is left to read what remains
		}
	}
	_ = dst.Close()
	_ = src.Close()
	wg.Wait()
}

// queue holds bytes on their way. It is as large as what was not yet read.
type queue struct {
	mu     sync.Mutex
	filled sync.Cond
	bytes  []byte
	ended  bool
}

// put appends a copy of p; last says that nothing follows.
func (q *queue) put(p []byte, last bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bytes = append(q.bytes, p...)
	q.ended = last
	q.filled.Signal()
}

// take waits for bytes and returns all there are; ok is false once there will
// be none.
func (q *queue) take() (p []byte, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.bytes) == 0 && !q.ended {
		q.filled.Wait()
	}
	p, q.bytes = q.bytes, nil
	return p, len(p) > 0
}
