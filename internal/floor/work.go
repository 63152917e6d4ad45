package floor

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// workers is how many goroutines of [Queue.Work] pop.
const workers = 2

// Work pops rows with two goroutines, calls run for each row, and acknowledges what one pop brought with one call.
// It returns once it has acknowledged total rows, or with the first error, which is ctx's own when ctx ends. run
// returns the row's result; it is called from both goroutines.
func (q *Queue) Work(ctx context.Context, total int, run func(input string) string) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var left atomic.Int64
	left.Store(int64(total))
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for left.Load() > 0 {
				n, err := q.workOnce(ctx, run)
				if err != nil {
					stop(err) // the first one counts
					return
				}
				left.Add(-int64(n))
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// workOnce takes one batch through, or waits a little if there is none.
func (q *Queue) workOnce(ctx context.Context, run func(input string) string) (int, error) {
	rows, err := q.Pop(ctx)
	if err != nil {
		return 0, err
	}
	if len(rows) == 0 {
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-time.After(idle):
			return 0, nil
		}
	}
	results := make([]string, len(rows))
	for i, row := range rows {
		results[i] = run(row.Input)
	}
	return len(rows), q.Ack(ctx, rows, results)
}
