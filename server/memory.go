package server

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/umbelhq/umbel"
)

// memory refuses starts when Redis is nearly full, so that what runs can go on.
type memory struct {
	asking sync.Mutex
	next   time.Time // when to ask again, guarded by asking
	full   atomic.Bool
}

// fullShare is how much of its maxmemory Redis may use before starts are refused: claims and results need room.
const fullShare = 0.8

// admit returns umbel.ErrOverloaded if Redis is nearly full. It asks at most once a second.
func (m *memory) admit(ctx context.Context, s *Server) error {
	const every = time.Second
	if m.asking.TryLock() { // who comes meanwhile goes by the last answer
		if now := time.Now(); now.After(m.next) { //nolint:forbidigo // paces this server only
			m.next = now.Add(every)
			// a Redis that does not say is not known to be full
			if share, err := s.rows.MemoryShare(ctx); err == nil {
				m.full.Store(share > fullShare)
			}
		}
		m.asking.Unlock()
	}
	if !m.full.Load() {
		return nil
	}
	return &umbel.Error{
		Code: umbel.CodeOverloaded, NotApplied: true,
		Reason: "Redis uses more than 80 % of its maxmemory: starts are refused so that what runs can finish. Raise maxmemory, or wait",
	}
}
