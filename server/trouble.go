package server

import (
	"log/slog"
	"time"
)

// trouble keeps what fails again and again from filling the log: it has a line when it begins, one a minute while it
// lasts, and one when it is over. One loop uses it.
type trouble struct {
	log   *slog.Logger
	what  string
	begun time.Time // zero: there is none
	said  time.Time
}

// troubleEvery is the time between two lines about one trouble.
const troubleEvery = time.Minute

// met is told how each try ended.
func (t *trouble) met(err error) {
	now := time.Now() //nolint:forbidigo // for the log only
	switch {
	case err == nil && t.begun.IsZero():
	case err == nil:
		t.log.Info("over: "+t.what, "after", now.Sub(t.begun).Round(time.Millisecond))
		t.begun = time.Time{}
	case t.begun.IsZero():
		t.begun, t.said = now, now
		t.log.Warn(t.what, "err", err)
	case now.Sub(t.said) >= troubleEvery:
		t.said = now
		t.log.Warn(t.what, "err", err, "for", now.Sub(t.begun).Round(time.Millisecond))
	}
}
