package umbeltest

import (
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"
)

// newLogger writes to tb's output, until the test's cleanups are through. What was registered for cleanup after it
// may still log. Instead of the time of day, which is an odd one in a bubble, lines have the time since now.
func newLogger(tb testing.TB) *slog.Logger {
	tb.Helper()
	out := &output{to: tb.Output()}
	tb.Cleanup(out.close)
	begun := time.Now()
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && a.Key == slog.TimeKey && a.Value.Kind() == slog.KindTime {
				return slog.Duration("at", a.Value.Time().Sub(begun))
			}
			return a
		},
	}))
}

// output is where a test's lines go. A handler that was left behind may log when the test is over, and testing
// panics at that: here it goes nowhere.
type output struct {
	mu sync.Mutex
	to io.Writer // nil: closed
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.to == nil {
		return len(p), nil
	}
	return o.to.Write(p)
}

func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.to = nil
}
