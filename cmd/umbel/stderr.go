package main

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

const (
	// maxLine bounds a line of a command's standard error; a longer one is passed on in pieces.
	maxLine = 8 << 10
	// maxTail is how much of the end of standard error a failure keeps.
	maxTail = 2 << 10
)

// passOn passes lines from r on to the worker's standard error, each behind the row's prefix, and keeps their end.
func (a *attempt) passOn(r io.Reader) {
	buf := make([]byte, 0, len(a.prefix)+maxLine+1)
	buf = append(buf, a.prefix...)
	line := func(end int) { // writes what is in buf up to end as a line, and keeps the rest
		rest := string(buf[end:])
		_, _ = a.command.stderr.Write(append(buf[:end], '\n')) // nobody is left to hear of it
		buf = append(buf[:len(a.prefix)], strings.TrimPrefix(rest, "\n")...)
	}
	chunk := make([]byte, maxLine)
	for {
		n, err := r.Read(chunk[:len(a.prefix)+maxLine-len(buf)])
		a.tail.write(chunk[:n])
		buf = append(buf, chunk[:n]...)
		for {
			i := bytes.IndexByte(buf[len(a.prefix):], '\n')
			if i < 0 {
				break
			}
			line(len(a.prefix) + i)
		}
		if len(buf) == len(a.prefix)+maxLine || err != nil && len(buf) > len(a.prefix) {
			line(len(buf))
		}
		if err != nil {
			return
		}
	}
}

// tail keeps the last bytes that were written.
type tail struct{ b []byte }

func newTail() *tail { return &tail{} }

func (t *tail) write(p []byte) {
	t.b = append(t.b, p...)
	if over := len(t.b) - maxTail; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
}

// String returns what is kept without white space around it.
func (t *tail) String() string { return strings.ToValidUTF8(strings.TrimSpace(string(t.b)), "\uFFFD") }

// lineWriter makes writers that share a stream take turns.
type lineWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lineWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
