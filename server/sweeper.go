package server

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/history"
	"github.com/umbelhq/umbel/outbox"
)

// sweepEvery is the longest time between two sweeps; it is a tenth of the lease if that is shorter.
const sweepEvery = time.Second

// sweep lets leases lapse whose worker has fallen silent. Any number of servers may sweep: the step that lets a
// claim lapse checks its deadline again. A shard, or a claim, that cannot be swept keeps none of the others.
func (s *Server) sweep(ctx context.Context) {
	unread := trouble{log: s.log, what: "lease cannot be read; the one in force stays"}
	unswept := trouble{log: s.log, what: "lapsed leases cannot be swept"}
	for {
		pause := min(s.Lease()/10, sweepEvery)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		// a master that is away must not keep the others from being swept: to them that would be a gap
		if err := s.within(ctx, pause, s.adoptLease); ctx.Err() == nil {
			unread.met(err)
		}
		if err := s.sweepAll(ctx, pause); ctx.Err() == nil {
			unswept.met(err)
		}
	}
}

// within bounds a call that must not hold up the sweep.
func (s *Server) within(ctx context.Context, d time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return f(ctx)
}

// maxLapses bounds the claims that one look at a shard names.
const maxLapses = 200

func (s *Server) sweepAll(ctx context.Context, patience time.Duration) error {
	shards := make([]int, s.rows.Space().Shards())
	for i := range shards {
		shards[i] = i
	}
	var failed []error
	for len(shards) > 0 {
		var lapsed [][]outbox.Lease
		var errs []error
		_ = s.within(ctx, patience, func(ctx context.Context) error { // every shard has its own error
			lapsed, errs = s.rows.Sweep(ctx, shards, s.Lease()/3, maxLapses)
			return nil
		})
		var again []int
		for i, claims := range lapsed {
			err := s.lapse(ctx, shards[i], claims)
			if err == nil && len(claims) == maxLapses {
				again = append(again, shards[i])
			}
			failed = append(failed, errs[i], err)
		}
		shards = again
	}
	return joinDistinct(failed)
}

// joinDistinct is errors.Join that says the same once: of a Redis that is away every shard says it.
func joinDistinct(errs []error) error {
	said := map[string]bool{}
	return errors.Join(slices.DeleteFunc(errs, func(err error) bool {
		again := err == nil || said[err.Error()]
		if !again {
			said[err.Error()] = true
		}
		return again
	})...)
}

// lapse ends the attempts that lapsed claims hold. A claim that cannot lapse keeps none of the others, unless it
// is Redis that is away.
func (s *Server) lapse(ctx context.Context, shard int, claims []outbox.Lease) error {
	var failed []error
	for part := range slices.Chunk(claims, maxBatches) {
		var batches []history.Batch
		for _, l := range part {
			b, err := s.lapseOf(ctx, shard, l)
			if errors.Is(err, umbel.ErrUnavailable) {
				return err
			}
			failed = append(failed, err)
			if err == nil && b.Run != nil {
				batches = append(batches, b)
			}
		}
		if len(batches) == 0 {
			continue
		}
		answers, errs := s.history.Settle(ctx, batches)
		for i, err := range errs {
			if errors.Is(err, umbel.ErrUnavailable) {
				return err
			}
			failed = append(failed, err)
			if err == nil && !answers[i].Live && len(batches[i].Rows) > 0 {
				s.log.Info("lease expired", "workflow", batches[i].Run.WorkflowID, "worker", batches[i].Rows[0].Worker,
					"rows", len(batches[i].Rows))
				s.watchers.notify(batches[i].Run.ID, answers[i].Closed != "")
			}
		}
	}
	return errors.Join(failed...)
}

// lapseOf says what the lapse of a claim means for the rows that it still holds: a failed attempt each. If the
// claim never reached a worker it costs none.
func (s *Server) lapseOf(ctx context.Context, shard int, l outbox.Lease) (history.Batch, error) {
	run, err := s.rows.Run(ctx, shard, umbel.RunID(l.RunID))
	if err != nil {
		return history.Batch{}, err
	}
	if run == nil || l.RunID == "" {
		return history.Batch{}, s.rows.Disclaim(ctx, shard, l.Nonce)
	}
	held, err := s.rows.Tries(ctx, run, l)
	if err != nil {
		return history.Batch{}, err
	}
	b := history.Batch{Run: run, Lapse: l.Nonce}
	for _, ordinal := range l.Ordinals {
		tries, ok := held[ordinal]
		if !ok {
			continue
		}
		row := history.Settled{
			Ending: history.Released, Nonce: l.Nonce, Route: l.Route, Ordinal: ordinal, Attempt: tries + 1,
			Worker: l.Worker, ClaimedAt: l.ClaimedAt,
		}
		if l.Delivered {
			decide(&row, run, &umbel.Failure{
				Type: umbel.FailureLeaseExpired, Attempt: tries + 1,
				Message: "the worker was not heard of for a whole lease of " + l.Lease.String(),
			})
		}
		b.Rows = append(b.Rows, row)
	}
	return b, nil
}
