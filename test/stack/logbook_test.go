package stack

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
)

// logbook keeps what servers and workers say.
type logbook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logbook) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *logbook) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	const most = 16 << 10 // of a test that failed, the end matters
	text := l.buf.String()
	return text[max(0, len(text)-most):]
}

// count returns how many lines hold all the words.
func (l *logbook) count(words ...string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
line:
	for line := range strings.Lines(l.buf.String()) {
		for _, w := range words {
			if !strings.Contains(line, w) {
				continue line
			}
		}
		n++
	}
	return n
}
