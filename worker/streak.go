package worker

import (
	"errors"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/umbelhq/umbel"
)

// maxBackOff bounds the wait after an error: how late a worker may notice that its server is back.
const maxBackOff = 5 * time.Second

// streak counts failures of one kind of call in a row. The first is tried again at once, and nobody is told, if the
// server was unavailable: while one server of several is stopped, the next try reaches another. From then on tries
// are spread, and the log has one warning.
type streak struct {
	waits  *backoff.ExponentialBackOff
	n      int
	warned bool
}

func newStreak() *streak {
	return &streak{waits: backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(100*time.Millisecond), backoff.WithMultiplier(2),
		backoff.WithRandomizationFactor(0.5), backoff.WithMaxInterval(maxBackOff),
		backoff.WithMaxElapsedTime(0), // never gives up
	)}
}

// failed returns how long to wait before the next try, and whether this is the moment to warn.
func (s *streak) failed(err error) (wait time.Duration, warn bool) {
	s.n++
	if s.n == 1 && errors.Is(err, umbel.ErrUnavailable) {
		return 0, false
	}
	warn, s.warned = !s.warned, true
	return s.waits.NextBackOff(), warn
}

// over ends the streak. It reports whether there was a warning, so that its end is worth a line too.
func (s *streak) over() bool {
	warned := s.warned
	s.n, s.warned = 0, false
	s.waits.Reset()
	return warned
}
