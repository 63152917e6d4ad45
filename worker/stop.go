package worker

import (
	"context"
	"fmt"
	"time"

	"github.com/umbelhq/umbel"
)

const (
	// abandonAfter is how long Run waits for handlers whose context has ended.
	abandonAfter = 5 * time.Second
	// flushTimeout is how long Run goes on reporting after that.
	flushTimeout = 5 * time.Second
	// hurriedPause is the most between two tries at a report while the worker stops.
	hurriedPause = 500 * time.Millisecond
)

// Drain makes the worker take no more rows, and waits until those in hand are finished and reported, however
// long they take; [Config.Grace] does not bound it. It returns an error only if ctx ends before that: the worker
// goes on draining then, and [Worker.Stop] cuts it short.
//
// Drain may be called before Run, which then returns [ErrStopped], and any number of times. A handler that
// calls it waits for itself.
func (w *Worker) Drain(ctx context.Context) error {
	w.shut(w.quit)
	return w.await(ctx, "drain")
}

// Stop makes the worker take no more rows, ends the contexts of those in hand with [umbel.ErrWorkerStopping] at
// once, and waits until they are handed back. A handler that then returns without success has its row released to
// other workers; no attempt is spent. Stop returns an error only if ctx ends before that; the worker goes on
// stopping.
//
// Stop may be called before Run, which then returns [ErrStopped], and any number of times, also during Drain. A
// handler that calls it waits for itself.
func (w *Worker) Stop(ctx context.Context) error {
	w.shut(w.quit, w.kill)
	return w.await(ctx, "stop")
}

func (w *Worker) shut(gates ...chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, g := range gates {
		select {
		case <-g:
		default:
			close(g)
		}
	}
	if w.state == stateNew {
		w.state = stateOver
		close(w.done)
	}
}

func (w *Worker) await(ctx context.Context, op string) error {
	select {
	case <-w.done:
		return nil
	default:
	}
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("worker: %s: %w", op, context.Cause(ctx))
	}
}

// finish ends what is in hand once polling has ended. Renewals and reports go on meanwhile.
func (w *Worker) finish(ctx context.Context, failed bool) error {
	w.mu.Lock()
	w.state = stateStopping
	w.mu.Unlock()

	close(w.hurry)
	w.letRun(ctx, failed)
	for _, h := range w.running() {
		h.cancel(umbel.ErrWorkerStopping)
	}
	if w.settle(abandonAfter, func() bool { return w.busy == 0 }) {
		w.handlers.Wait()
	}
	left := w.abandon()
	reported := w.settle(flushTimeout, func() bool { return len(w.held) == 0 })

	w.mu.Lock()
	defer w.mu.Unlock()
	if left == 0 && reported {
		return nil
	}
	return fmt.Errorf("worker: stopped with %d handlers that did not return after their context ended, and %d outcomes not reported",
		left, len(w.held))
}

// letRun waits for the handlers and their reports: for ever if the worker was only told to drain, for the grace once ctx has ended
// or polling has failed, not at all once it was told to stop.
func (w *Worker) letRun(ctx context.Context, failed bool) {
	grace := time.NewTimer(w.cfg.Grace)
	defer grace.Stop()
	ended := ctx.Done()
	if failed {
		ended = nil // the grace runs already
	} else {
		grace.Stop()
	}
	for {
		w.mu.Lock()
		over := w.busy == w.stuck && len(w.held) == 0
		w.mu.Unlock()
		if over {
			return
		}
		select {
		case <-w.settled:
		case <-ended:
			ended = nil
			grace.Reset(w.cfg.Grace)
		case <-grace.C:
			return
		case <-w.kill:
			return
		}
	}
}

// settle waits until over, which is called with mu held, or for d. It reports which.
func (w *Worker) settle(d time.Duration, over func() bool) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		w.mu.Lock()
		ok := over()
		w.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-w.settled:
		case <-timer.C:
			return false
		}
	}
}

// running returns the rows whose handlers run.
func (w *Worker) running() []*hold {
	w.mu.Lock()
	defer w.mu.Unlock()
	var hs []*hold
	for _, h := range w.held {
		if !h.over {
			hs = append(hs, h)
		}
	}
	return hs
}

// abandon releases the rows whose handlers ignore the end of their context: the process is about to end, and
// another worker can have them now. It returns how many handlers are left behind.
func (w *Worker) abandon() int {
	hs := w.running()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range hs {
		if h.over {
			continue
		}
		w.stuck++
		w.conclude(h, umbel.ReportItem{Token: h.row.Token, Outcome: umbel.OutcomeReleased}, !h.lost)
	}
	if w.busy > 0 {
		w.log.Warn("handlers are left behind: they ignore the end of their context", "rows", w.busy)
	}
	return w.busy
}
