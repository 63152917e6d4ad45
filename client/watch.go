package client

import (
	"context"
	"iter"
	"time"

	"github.com/umbelhq/umbel"
)

// watchWait is how long one look of a watch is held open for the run's close. Its reply says how the run stands then.
const watchWait = 500 * time.Millisecond

// Watch yields how the rows stand: once at the start, then within half a second whenever it has changed, for the
// last time when the run is closed, which is seen at once. Changes that follow one another more quickly are
// yielded as one.
//
// The sequence's own error comes once and last, with zero counts: [umbel.ErrNotFound], or [umbel.ErrUnavailable],
// which wraps ctx's error when ctx ends; the run goes on. Break out at any time; ranging again watches anew.
func (r *Run[Out]) Watch(ctx context.Context) iter.Seq2[umbel.Counts, error] {
	return func(yield func(umbel.Counts, error) bool) {
		for info, err := range r.h.watch(ctx) {
			if !yield(info.Counts, err) {
				return
			}
		}
	}
}

// watch yields how the run stands whenever that has changed, until it is closed.
func (h *handle) watch(ctx context.Context) iter.Seq2[umbel.RunInfo, error] {
	return func(yield func(umbel.RunInfo, error) bool) {
		var last umbel.RunInfo // the zero one is of no status, so the first look is a change
		runID, wait := h.runID, time.Duration(0)
		for {
			asked := time.Now()
			d, err := h.describe(ctx, "watch", runID, wait)
			if err != nil {
				yield(umbel.RunInfo{}, err)
				return
			}
			if d.Status != last.Status || d.Counts != last.Counts {
				if !yield(d.RunInfo, nil) {
					return
				}
				last = d.RunInfo
			}
			if d.Status != umbel.StatusRunning {
				return
			}
			if wait > 0 {
				pace(ctx, asked)
			}
			runID, wait = d.RunID, watchWait
		}
	}
}
