package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/umbelhq/umbel"
)

// Patience is how long a call is repeated while the server is unavailable, counted from the first such answer,
// if its context has no deadline. It outlasts a restart of the server and a failover of Redis. With a deadline,
// the call is repeated until then.
const Patience = 30 * time.Second

// The second try follows the first at once. The waits from then on grow from firstWait to longestWait, each spread
// by ± waitSpread.
const (
	firstWait   = 50 * time.Millisecond
	longestWait = 5 * time.Second
	waitSpread  = 0.5
)

// call makes one call on the engine and repeats it while the answer is unavailable. Every call of the seam is
// idempotent, so an answer that was lost needs no other care. A single such answer is nothing to tell anybody: it
// is what a rolling restart of the servers looks like.
func call[Rep any](
	ctx context.Context, c *Client, op string, id umbel.WorkflowID, do func(context.Context) (Rep, error),
) (Rep, error) {
	var (
		none    Rep
		last    error
		waits   *backoff.ExponentialBackOff
		unknown bool // whether some try may have been applied
	)
	for tries := 0; ; tries++ {
		if ctx.Err() != nil {
			return none, contextEnded(ctx, op, id, last, !unknown)
		}
		rep, err := do(ctx)
		if err == nil {
			return rep, nil
		}
		if umbel.CodeOf(err) != umbel.CodeUnavailable || tries == 0 && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return none, err
		}
		last, unknown = err, unknown || !umbel.SafeToRetry(err)
		if waits == nil {
			waits = newWaits(ctx)
			continue // at once: while one server of several is stopped, the next try reaches another
		}
		if tries == 1 {
			c.log.WarnContext(ctx, "client: server unavailable, trying again",
				"op", op, "ns", c.namespace, "workflow", string(id), "err", err)
		}
		wait := waits.NextBackOff()
		if wait == backoff.Stop {
			return none, &umbel.Error{
				Code: umbel.CodeUnavailable, Op: op, WorkflowID: id, NotApplied: !unknown, Err: err,
				Reason: fmt.Sprintf("gave up after %d tries", tries+1),
			}
		}
		sleep(ctx, wait)
	}
}

func newWaits(ctx context.Context) *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = firstWait, longestWait
	b.Multiplier, b.RandomizationFactor = 2, waitSpread
	b.MaxElapsedTime = Patience
	if _, ok := ctx.Deadline(); ok {
		b.MaxElapsedTime = 0 // the deadline bounds it
	}
	b.Reset()
	return b
}

// sleep returns after d, or when ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// contextEnded is the error of a call whose context has ended: unavailable, wrapping the context's error.
func contextEnded(ctx context.Context, op string, id umbel.WorkflowID, last error, notApplied bool) error {
	reason := "the context ended"
	if last != nil {
		reason += " while the server was unavailable (" + last.Error() + ")"
	}
	return &umbel.Error{
		Code: umbel.CodeUnavailable, Op: op, WorkflowID: id,
		Reason: reason, NotApplied: notApplied, Err: ctx.Err(),
	}
}

// minPoll is the least time between two long polls that bring nothing.
const minPoll = 50 * time.Millisecond

// pace waits out minPoll since asked. A server that does not hold an empty reply back, because it is stopping
// or configured so, must not be asked in a tight loop.
func pace(ctx context.Context, asked time.Time) {
	if d := minPoll - time.Since(asked); d > 0 {
		sleep(ctx, d)
	}
}
