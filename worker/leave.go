package worker

import (
	"context"
	"time"

	"github.com/umbelhq/umbel"
)

const (
	// leaveTimeout is how long a stopping worker waits for the poll that it has open, before it cuts it off.
	leaveTimeout = 2 * time.Second
	// leaveAgain is how often it asks: a poll may reach its server after the call that is to end it.
	leaveAgain = 100 * time.Millisecond
)

// endPoll makes the poll of ctx come back, because the worker stops. Cut off, it would lose rows that are on their way,
// until their lease lapses, and each of them an attempt; so the server is asked to answer, and only if that does not help
// is the poll cut off.
func (w *Worker) endPoll(ctx context.Context, cut context.CancelFunc) {
	defer cut()
	ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	for ctx.Err() == nil {
		err := guard(func() error {
			return w.engine.Leave(ctx, umbel.LeaveRequest{Namespace: w.cfg.Namespace, Worker: w.cfg.Identity})
		})
		if err != nil {
			return
		}
		again := time.NewTimer(leaveAgain)
		select {
		case <-ctx.Done():
		case <-again.C:
		}
		again.Stop()
	}
}
