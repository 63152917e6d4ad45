package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/umbelhq/umbel"
)

const (
	// renewEvery is how often leases are renewed at least: a cancelled run's handlers learn of it from the reply,
	// and they are to within a second, the call's own time included.
	renewEvery = 900 * time.Millisecond
	// renewBatch bounds the tokens of a call, renewCalls the calls at a time.
	renewBatch = 1_000
	renewCalls = 4
	// maxRenewTimeout bounds a renewal call. With short leases it is a third of the shortest.
	maxRenewTimeout = 10 * time.Second
)

// renewLoop renews the leases of all rows in hand, at least every third of the shortest, until ctx ends. A call that
// fails twice is not repeated before its time. Calls run beside the loop, so that a slow one delays neither the
// next row's renewal nor the moment at which a row counts as lost.
func (w *Worker) renewLoop(ctx context.Context) {
	var calls sync.WaitGroup
	defer calls.Wait()
	round := make(chan struct{}, 1) // holds an element while a round is on
	timer := time.NewTimer(renewEvery)
	defer timer.Stop()
	renewAt := time.Now().Add(renewEvery)
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.shortened:
			if at := time.Now().Add(w.interval()); at.Before(renewAt) {
				renewAt = at
			}
		case <-timer.C:
		}
		now := time.Now()
		lapse, shortest := w.loseSilent(now)
		if !now.Before(renewAt) {
			select {
			case round <- struct{}{}:
				calls.Go(func() {
					w.renewAll(ctx, min(shortest/3, maxRenewTimeout))
					<-round
				})
			default: // the round before is slow; its calls end by their timeout
			}
			renewAt = now.Add(w.interval())
		}
		timer.Reset(min(renewAt.Sub(now), max(lapse, time.Millisecond)))
	}
}

func (w *Worker) interval() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.every
}

// comeEarlier sees to it that the next renewal is at most d away. mu is held.
func (w *Worker) comeEarlier(d time.Duration) {
	if d < w.every {
		w.every = d
		poke(w.shortened)
	}
}

// loseSilent cancels the handlers of rows whose renewals have not been answered for too long: for all this worker
// knows, others run them now. It returns how long it is until it has to look again, and the shortest lease in hand.
func (w *Worker) loseSilent(now time.Time) (lapse, shortest time.Duration) {
	var mute []*hold
	lapse, shortest = renewEvery, umbel.MaxLease
	w.mu.Lock()
	for _, h := range w.held {
		if h.lost {
			continue
		}
		lease := h.lease()
		shortest = min(shortest, lease)
		if h.over || h.silent {
			continue
		}
		if w.cfg.MaxSilence == 0 { // only the server's word ends a handler
			continue
		}
		left := w.cfg.MaxSilence - now.Sub(h.renewed)
		if left > 0 {
			lapse = min(lapse, left)
			continue
		}
		h.silent = true
		w.stats.Lost++
		mute = append(mute, h)
	}
	w.every = min(renewEvery, shortest/3)
	w.mu.Unlock()
	for _, h := range mute {
		h.cancel(umbel.ErrLeaseLost)
	}
	if len(mute) > 0 {
		w.log.Warn("leases could not be renewed; their handlers are cancelled", "rows", len(mute))
	}
	return lapse, shortest
}

// renewAll makes one round of calls for all rows in hand, those that wait for a report included.
func (w *Worker) renewAll(ctx context.Context, timeout time.Duration) {
	w.mu.Lock()
	hs := make([]*hold, 0, len(w.held))
	for _, h := range w.held {
		if !h.lost {
			hs = append(hs, h)
		}
	}
	w.mu.Unlock()

	var calls sync.WaitGroup
	defer calls.Wait()
	slots := make(chan struct{}, renewCalls)
	for len(hs) > 0 {
		batch := hs[:min(len(hs), renewBatch)]
		hs = hs[len(batch):]
		slots <- struct{}{}
		calls.Go(func() {
			defer func() { <-slots }()
			w.renew(ctx, batch, timeout)
		})
	}
}

// renew renews leases within timeout. If the server is unavailable it tries once more, at once: while one server of
// several is stopped, that reaches another.
func (w *Worker) renew(ctx context.Context, batch []*hold, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tokens := make([]umbel.Token, len(batch))
	for i, h := range batch {
		tokens[i] = h.row.Token
	}
	for again := true; ; again = false {
		sent := time.Now() // the lease began anew no earlier than this
		states, err := w.askToRenew(ctx, tokens)
		if err == nil {
			w.renewed(batch, states, sent)
			return
		}
		again = again && ctx.Err() == nil && errors.Is(err, umbel.ErrUnavailable)
		w.renewFailed(ctx, err, again)
		if !again {
			return
		}
	}
}

// askToRenew makes one call.
func (w *Worker) askToRenew(ctx context.Context, tokens []umbel.Token) ([]umbel.HoldState, error) {
	var reply umbel.RenewReply
	err := guard(func() (err error) {
		reply, err = w.engine.Renew(ctx, umbel.RenewRequest{
			Namespace: w.cfg.Namespace, Worker: w.cfg.Identity, Tokens: tokens,
		})
		return err
	})
	if err == nil && len(reply.States) != len(tokens) {
		err = &umbel.Error{
			Code: umbel.CodeInternal, Op: "renew",
			Reason: fmt.Sprintf("%d states for %d tokens", len(reply.States), len(tokens)),
		}
	}
	return reply.States, err
}

// renewFailed counts an error, and logs the first of a streak that another try at once does not mend.
func (w *Worker) renewFailed(ctx context.Context, err error, again bool) {
	w.mu.Lock()
	w.stats.RenewErrors++
	first := !again && !w.renewFailing
	w.renewFailing = w.renewFailing || !again
	w.mu.Unlock()
	if first && !errors.Is(context.Cause(ctx), context.Canceled) { // canceled: the worker ends
		w.log.Warn("cannot renew leases, trying again", "err", err)
	}
}

// renewed takes a call's answer.
func (w *Worker) renewed(batch []*hold, states []umbel.HoldState, sent time.Time) {
	type end struct {
		h     *hold
		cause error
	}
	var ends []end
	w.mu.Lock()
	w.stats.Renewals++
	w.renewFailing = false
	for i, h := range batch {
		if h.index < 0 {
			continue // finished meanwhile
		}
		if states[i] == umbel.Held {
			h.renewed = sent
			continue
		}
		if h.flying {
			continue // the report may be what resolved the row; its verdict decides
		}
		h.lost = true
		if h.over {
			continue
		}
		if states[i] == umbel.HoldCancelled {
			w.stats.Cancelled++
			ends = append(ends, end{h, umbel.ErrCancelled})
			continue
		}
		if !h.silent {
			w.stats.Lost++
		}
		ends = append(ends, end{h, umbel.ErrLeaseLost})
	}
	w.mu.Unlock()
	for _, e := range ends {
		e.h.cancel(e.cause)
	}
}
