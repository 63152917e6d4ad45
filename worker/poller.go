package worker

import (
	"context"
	"errors"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/attempt"
)

const (
	// pollSlack is how much longer than its wait a poll may take before it is given up as hung.
	pollSlack = 10 * time.Second
	// emptyPause keeps a worker from spinning on an engine that answers with nothing instead of waiting.
	emptyPause = 50 * time.Millisecond
	// heldPerSlot bounds the rows whose outcome waits for a report, so that memory is bounded while the server
	// is away: with this many rows a slot in hand a worker polls no more.
	heldPerSlot = 4
	// maxQueuedBytes bounds them in bytes. A worker above it polls no more.
	maxQueuedBytes = 64 << 20
)

// plan is a poll to make: of at most rows rows of types. A plan of no rows is none.
type plan struct {
	types []string
	rows  int
	// capped says that there are slots for more rows, but not for more of one of the types.
	capped bool
}

// pollLoop keeps one poll open while there are slots, until ctx ends. Handlers get base. It returns an error
// only if the engine refuses its polls for good.
//
// A poll must not bring more rows of a type than that has slots for, and its only measure is the rows in all. So
// a poll for all types asks for as many rows as the tightest type allows. When it comes back full, there may be
// more of the others: they are asked for at once, without waiting, type by type where a type has slots of its
// own. A worker whose types have none never does this.
func (w *Worker) pollLoop(ctx, base context.Context) error {
	failures := newStreak()
	for {
		p, ok := w.awaitRoom(ctx)
		if !ok {
			return nil
		}
		begun := time.Now()
		n, err := w.poll(ctx, base, p, w.cfg.PollWait)
		if err == nil && p.capped && n >= p.rows {
			err = w.pollGroups(ctx, base)
		}
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the worker ends, and with it this call
		case err == nil:
			if failures.over() {
				w.log.Info("polling again")
			}
			if n == 0 && time.Since(begun) < min(emptyPause, w.cfg.PollWait/2) {
				w.pause(ctx, emptyPause)
			}
			continue
		case errors.Is(err, umbel.ErrInvalid):
			return err
		}
		wait, warn := failures.failed(err)
		if warn {
			w.log.Warn("cannot poll, trying again", "err", err)
		}
		w.pause(ctx, wait)
	}
}

// pollGroups polls without waiting for each group of types that share their slots.
func (w *Worker) pollGroups(ctx, base context.Context) error {
	for _, g := range w.groups {
		w.mu.Lock()
		p := w.plan(g)
		w.mu.Unlock()
		if p.rows == 0 {
			continue
		}
		if _, err := w.poll(ctx, base, p, 0); err != nil {
			return err
		}
	}
	return nil
}

// awaitRoom waits until there are enough slots for a poll.
func (w *Worker) awaitRoom(ctx context.Context) (plan, bool) {
	for {
		if ctx.Err() != nil {
			return plan{}, false
		}
		w.yield() // what quick handlers free makes this poll larger
		w.mu.Lock()
		p := w.plan(nil)
		w.pollerWaits = p.rows == 0
		w.mu.Unlock()
		if p.rows > 0 {
			return p, true
		}
		select {
		case <-ctx.Done():
		case <-w.room:
		}
	}
}

// plan returns the poll that the free slots allow: for the types of group, or for all if it is nil. An idle worker
// polls at once, a busy one when a quarter of its slots is free, so that a poll is worth its while; the same goes
// for a type with slots of its own. mu is held.
func (w *Worker) plan(group []*activityType) plan {
	free := min(w.cfg.Concurrency-w.busy, heldPerSlot*w.cfg.Concurrency-len(w.held), umbel.MaxPollRows)
	if !worthwhile(free, w.busy, w.cfg.Concurrency) || w.queuedBytes > maxQueuedBytes {
		return plan{}
	}
	p := plan{rows: free}
	if group == nil && len(w.groups) == 1 && w.groups[0][0].limit == 0 {
		p.types = w.allTypes
		return p
	}
	p.types = make([]string, 0, len(w.types))
	add := func(ts []*activityType) {
		for _, t := range ts {
			if t.limit > 0 {
				own := t.limit - t.busy
				if !worthwhile(own, t.busy, t.limit) {
					continue
				}
				p.rows = min(p.rows, own)
			}
			p.types = append(p.types, t.name)
		}
	}
	if group != nil {
		add(group)
	} else {
		for _, g := range w.groups {
			add(g)
		}
	}
	if len(p.types) == 0 {
		return plan{}
	}
	p.capped = p.rows < free
	return p
}

func worthwhile(free, busy, slots int) bool {
	return free > 0 && (busy == 0 || free >= min((slots+3)/4, umbel.MaxPollRows))
}

// poll makes one poll and starts what it brings. It returns how many rows it started.
func (w *Worker) poll(ctx, base context.Context, p plan, wait time.Duration) (int, error) {
	callCtx, cancel := context.WithTimeout(base, wait+pollSlack)
	defer cancel()
	defer context.AfterFunc(ctx, func() { w.endPoll(callCtx, cancel) })()
	var reply umbel.PollReply
	err := guard(func() (err error) {
		reply, err = w.engine.Poll(callCtx, umbel.PollRequest{
			Namespace: w.cfg.Namespace, TaskQueue: w.cfg.TaskQueue, Node: w.cfg.Node,
			Types: p.types, Worker: w.cfg.Identity, MaxRows: p.rows, Wait: wait,
		})
		return err
	})
	if err != nil {
		if ctx.Err() == nil {
			w.mu.Lock()
			w.stats.PollErrors++
			w.mu.Unlock()
		}
		return 0, err
	}
	return w.accept(ctx, base, p, reply.Rows), nil
}

// accept starts the handlers of rows. Rows that came too late, or that were not asked for, go back at once.
// It returns how many it started.
func (w *Worker) accept(ctx, base context.Context, p plan, rows []umbel.ClaimedRow) int {
	started := make([]*hold, 0, len(rows))
	now := time.Now()
	stopping := ctx.Err() != nil
	unasked := 0

	w.mu.Lock()
	w.stats.Polls++
	w.stats.Rows += int64(len(rows))
	for _, row := range rows {
		typ := w.types[row.Type]
		if stopping || typ == nil || len(started) >= p.rows {
			if !stopping {
				unasked++
			}
			h := &hold{worker: w, row: row, typ: typ}
			w.take(h, now)
			w.conclude(h, umbel.ReportItem{Token: row.Token, Outcome: umbel.OutcomeReleased}, true)
			continue
		}
		h := w.newHold(base, row, typ)
		w.take(h, now)
		w.busy++
		typ.busy++
		started = append(started, h)
	}
	w.mu.Unlock()

	for _, h := range started {
		w.handlers.Go(func() { w.execute(h) })
	}
	if unasked > 0 {
		w.log.Warn("a poll brought rows that were not asked for; they are released", "rows", unasked)
	}
	return len(started)
}

// pause waits for d, or until ctx ends. Once the worker hurries to report what is left it is a short while.
func (w *Worker) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return
	case <-timer.C:
		return
	case <-w.hurry:
	}
	timer.Reset(min(d, hurriedPause))
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// guard turns a panic of the engine into an error, so that no loop ends of it.
func guard(call func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &umbel.Error{
				Code: umbel.CodeInternal, Reason: "the engine panicked",
				Err: attempt.Panicked(v),
			}
		}
	}()
	return call()
}
