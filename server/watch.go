package server

import (
	"context"
	"sync"
	"time"

	"github.com/umbelhq/umbel"
)

// watchers wakes who waits for news of a run. It hints only: a waiter looks again by itself every second.
type watchers struct {
	mu      sync.Mutex
	waiting map[umbel.RunID][]watcher
}

type watcher struct {
	news      chan struct{}
	closeOnly bool // waits for the run's close, not for results
}

// watch returns a channel that is closed at the next news of a run, and what stops watching.
func (w *watchers) watch(run umbel.RunID, closeOnly bool) (<-chan struct{}, func()) {
	ch := make(chan struct{})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting[run] = append(w.waiting[run], watcher{ch, closeOnly})
	return ch, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		all := w.waiting[run]
		for i, c := range all {
			if c.news == ch {
				w.waiting[run] = append(all[:i:i], all[i+1:]...)
			}
		}
		if len(w.waiting[run]) == 0 {
			delete(w.waiting, run)
		}
	}
}

// notify wakes those who wait for results of a run, and if it is closed those who wait for that.
func (w *watchers) notify(run umbel.RunID, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var rest []watcher
	for _, c := range w.waiting[run] {
		if c.closeOnly && !closed {
			rest = append(rest, c)
			continue
		}
		close(c.news)
	}
	if len(rest) == 0 {
		delete(w.waiting, run)
	} else {
		w.waiting[run] = rest
	}
}

// look is how often a waiter looks without having been woken.
const look = time.Second

// await calls try until it says done, wait has passed, or the call must end. News of the run wake it.
func (s *Server) await(ctx context.Context, op string, run umbel.RunID, closeOnly bool, wait time.Duration, try func() (bool, error)) error {
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	again := time.NewTicker(look)
	defer again.Stop()
	for {
		news, stop := s.watchers.watch(run, closeOnly) // before the look, so that nothing is missed between
		done, err := try()
		if done || err != nil || wait <= 0 {
			stop()
			return err
		}
		select {
		case <-news:
		case <-again.C:
		case <-deadline.C:
			stop()
			return nil
		case <-s.drained: // the caller waits on at another server
			stop()
			return nil
		case <-ctx.Done():
			stop()
			return ended(ctx, op)
		case <-s.closed:
			stop()
			return errClosed(op)
		}
		stop()
	}
}
