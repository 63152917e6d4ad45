package server

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/outbox"
)

// watchers wakes who waits for news of a run: at once for what this server does or hears of, and within [look] for what
// it does not. However many wait for a run, one look is for all of them.
type watchers struct {
	mu   sync.Mutex
	runs map[umbel.RunID]*watched
}

// watched is a run that somebody waits for.
type watched struct {
	run     *outbox.Run
	seen    outbox.Glance // at the last look, if there was one
	looked  bool
	waiting []watcher
}

type watcher struct {
	news      chan struct{}
	closeOnly bool // waits for the run's close, not for results
}

// watch returns a channel that is closed at the next news of a run, and what stops watching.
func (w *watchers) watch(run *outbox.Run, closeOnly bool) (<-chan struct{}, func()) {
	ch := make(chan struct{})
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.runs[run.ID]
	if e == nil {
		e = &watched{run: run}
		w.runs[run.ID] = e
	}
	e.waiting = append(e.waiting, watcher{ch, closeOnly})
	return ch, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		e.waiting = slices.DeleteFunc(e.waiting, func(c watcher) bool { return c.news == ch })
		if len(e.waiting) == 0 && w.runs[run.ID] == e {
			delete(w.runs, run.ID)
		}
	}
}

// notify wakes those who wait for results of a run, and if it is closed those who wait for that.
func (w *watchers) notify(run umbel.RunID, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e := w.runs[run]; e != nil {
		e.notify(closed)
	}
}

func (e *watched) notify(closed bool) {
	e.waiting = slices.DeleteFunc(e.waiting, func(c watcher) bool {
		if c.closeOnly && !closed {
			return false
		}
		close(c.news)
		return true
	})
}

// all lists the runs that somebody waits for.
func (w *watchers) all() []*outbox.Run {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]*outbox.Run, 0, len(w.runs))
	for _, e := range w.runs {
		out = append(out, e.run)
	}
	return out
}

// see takes what a look at runs showed, and wakes those for whom it is news.
func (w *watchers) see(runs []*outbox.Run, glances []outbox.Glance) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, r := range runs {
		e := w.runs[r.ID]
		if e == nil {
			continue
		}
		// what came between a waiter's own look and the first one here is news too
		if closed := glances[i].Status != umbel.StatusRunning; closed || !e.looked || e.seen != glances[i] {
			e.seen, e.looked = glances[i], true
			e.notify(closed)
		}
	}
}

const (
	// look is how often a server looks at the runs that somebody waits for.
	look = time.Second
	// lookTimeout is how long a look may take before the waiters look for themselves, and say what is wrong.
	lookTimeout = 3 * look
	// maxLook bounds the runs of one round trip.
	maxLook = 500
)

// lookOut looks at the runs that somebody waits for, until ctx ends.
func (s *Server) lookOut(ctx context.Context) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for part := range slices.Chunk(s.watchers.all(), maxLook) {
			s.lookAt(ctx, part)
		}
	}
}

func (s *Server) lookAt(ctx context.Context, runs []*outbox.Run) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	glances, err := s.rows.Glance(ctx, runs)
	if err == nil {
		s.watchers.see(runs, glances)
		return
	}
	for _, r := range runs {
		s.watchers.notify(r.ID, true)
	}
}

// await calls try until it says done, wait has passed, or the call must end. News of the run wake it. run may be nil if
// wait is 0.
func (s *Server) await(ctx context.Context, op string, run *outbox.Run, closeOnly bool, wait time.Duration, try func() (bool, error)) error {
	if wait <= 0 {
		_, err := try()
		return err
	}
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	for {
		news, stop := s.watchers.watch(run, closeOnly) // before the look, so that nothing is missed between
		done, err := try()
		if done || err != nil {
			stop()
			return err
		}
		select {
		case <-news:
		case <-deadline.C:
			stop()
			_, err := try() // as it is now, not as it was when the wait began
			return err
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
