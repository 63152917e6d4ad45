package server

import (
	"time"

	"github.com/umbelhq/umbel/internal/keys"
)

// pool is what a worker polls: only its routes concern a poll.
type pool struct{ namespace, queue string }

func poolOf(r keys.Route) pool { return pool{r.Namespace, r.TaskQueue} }

// schedule says when to look at which route, by Redis's clock. It is not safe for concurrent use.
type schedule map[pool]map[keys.Route]time.Time

func (s schedule) at(r keys.Route) (time.Time, bool) {
	at, ok := s[poolOf(r)][r]
	return at, ok
}

func (s schedule) set(r keys.Route, at time.Time) {
	p := poolOf(r)
	if s[p] == nil {
		s[p] = map[keys.Route]time.Time{}
	}
	s[p][r] = at
}

// earlier sets at unless the route is to be looked at sooner.
func (s schedule) earlier(r keys.Route, at time.Time) {
	if old, ok := s.at(r); !ok || at.Before(old) {
		s.set(r, at)
	}
}

func (s schedule) drop(r keys.Route) {
	p := poolOf(r)
	delete(s[p], r)
	if len(s[p]) == 0 {
		delete(s, p)
	}
}

// next is the earliest instant after now; false if there is none.
func (s schedule) next(now time.Time) (time.Time, bool) {
	var first time.Time
	for _, routes := range s {
		for _, at := range routes {
			if at.After(now) && (first.IsZero() || at.Before(first)) {
				first = at
			}
		}
	}
	return first, !first.IsZero()
}
