package server

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/keys"
	"github.com/umbelhq/umbel/internal/lua"
	"github.com/umbelhq/umbel/outbox"
)

// claimShard is one shard as the claimer sees it: which routes to look at, and when. Wake-ups add to it; the
// ready set in Redis is the truth that it is read from again and again.
type claimShard struct {
	c     *claimer
	index int
	kick  chan struct{}

	mu     sync.Mutex
	due    schedule
	hinted map[keys.Route]bool // since the claim that is under way began
	stale  bool                // due may lack routes: read the ready set
	doubts int                 // counts the reasons for that
	offset time.Duration       // Redis's clock less this process's
	synced bool                // offset is known
	read   time.Time           // when the ready set was last read, by this process's clock
}

// How often a shard's ready set is read though no wake-up came.
const (
	readBusy = time.Second     // workers hold rows or polls wait and wake-ups may be lost
	readIdle = 5 * time.Second // nothing goes on
)

func (sh *claimShard) wake() {
	select {
	case sh.kick <- struct{}{}:
	default:
	}
}

// now estimates Redis's clock. sh.mu is held.
func (sh *claimShard) now() time.Time { return time.Now().Add(sh.offset) } //nolint:forbidigo // an estimate; the script decides

// sync learns from a reading of Redis's clock, which is as old as its reply took to arrive. A reply that was slow
// counts for an eighth only, lest rows come late after it; clocks are set, so it must count. sh.mu is held.
func (sh *claimShard) sync(now time.Time) {
	const slow, share = time.Second, 8
	offset := time.Until(now) //nolint:forbidigo // an estimate; the script decides
	if late := sh.offset - offset; sh.synced && late > 0 && late < slow {
		offset = sh.offset - late/share
	}
	sh.offset, sh.synced = offset, true
}

// hint notes that a route is to be looked at from an instant on.
func (sh *claimShard) hint(r keys.Route, at time.Time) {
	sh.mu.Lock()
	sh.due.earlier(r, at)
	if sh.hinted != nil {
		sh.hinted[r] = true
	}
	sh.mu.Unlock()
	sh.wake()
}

// doubt makes the shard read its ready set.
func (sh *claimShard) doubt() {
	sh.mu.Lock()
	sh.stale = true
	sh.doubts++
	sh.mu.Unlock()
	sh.wake()
}

// mayHave reports whether the shard may have rows for p now.
func (sh *claimShard) mayHave(p *poll) bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.stale {
		return true
	}
	now := sh.now()
	for r, at := range sh.due[p.scope.pool()] {
		if !at.After(now) && p.admits(r) {
			return true
		}
	}
	return false
}

// dueFor lists the routes that are due and in p's scope, the earliest first, as many as one claim can serve.
func (sh *claimShard) dueFor(p *poll, now time.Time) []keys.Route {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	var out []keys.Route
	due := sh.due[p.scope.pool()]
	for r, at := range due {
		if !at.After(now) && p.admits(r) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b keys.Route) int { return due[a].Compare(due[b]) })
	return out[:min(len(out), lua.MaxPairs)]
}

// run claims whenever there may be rows for polls that wait.
func (sh *claimShard) run(ctx context.Context) {
	pace := time.NewTimer(0)
	defer pace.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-sh.kick:
		case <-pace.C:
		}
		for ctx.Err() == nil {
			if err := sh.refresh(ctx); err != nil {
				sh.pause(ctx, "ready routes cannot be read", err)
				continue
			}
			more, err := sh.claim(ctx)
			if err != nil {
				sh.pause(ctx, "rows cannot be claimed", err)
				continue
			}
			if !more {
				break
			}
		}
		pace.Reset(sh.wait())
	}
}

// pause waits after an error, so that a Redis that is away is not asked without end.
func (sh *claimShard) pause(ctx context.Context, what string, err error) {
	const wait = 200 * time.Millisecond
	if ctx.Err() != nil {
		return
	}
	sh.c.s.log.Warn(what, "shard", sh.index, "err", err)
	sh.doubt()
	select {
	case <-ctx.Done():
	case <-time.After(wait):
	}
}

// wait is how long nothing needs to be done unless a wake-up comes: until the next route is due, or the ready
// set is to be read again.
func (sh *claimShard) wait() time.Duration {
	d := sh.c.pace()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := sh.now()
	if at, ok := sh.due.next(now); ok {
		d = min(d, at.Sub(now)+time.Millisecond)
	}
	return max(d, time.Millisecond)
}

// pace is how often ready sets are read though no wake-up came.
func (c *claimer) pace() time.Duration {
	if c.busy() || c.anyWaiting() && !c.hints.Load() {
		return readBusy
	}
	return readIdle
}

func (c *claimer) anyWaiting() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting) > 0
}

// refresh reads the ready set if it is time to, or if something may be missing.
func (sh *claimShard) refresh(ctx context.Context) error {
	pace := sh.c.pace()
	sh.mu.Lock()
	needed := sh.stale || time.Since(sh.read) >= pace //nolint:forbidigo // paces this server only
	if needed {
		sh.hinted = map[keys.Route]bool{}
	}
	doubts := sh.doubts
	sh.mu.Unlock()
	if !needed {
		return nil
	}
	ready, now, err := sh.c.s.rows.Ready(ctx, sh.index)
	if err != nil {
		return err
	}
	if len(ready) >= outbox.MaxReady { // what others leave waiting must not hide what is asked for here
		asked, err := sh.c.s.rows.ReadyOf(ctx, sh.index, sh.c.wanted())
		if err != nil {
			return err
		}
		ready = append(ready, asked...)
	}
	sh.mu.Lock()
	kept := schedule{}
	for r := range sh.hinted { // what came while the set was read may be newer than it
		if at, ok := sh.due.at(r); ok {
			kept.set(r, at)
		}
	}
	for _, r := range ready {
		kept.earlier(r.Route, r.At)
	}
	sh.due = kept
	sh.stale, sh.hinted = sh.doubts != doubts, nil // a doubt that came meanwhile is not yet answered
	sh.read = time.Now()                           //nolint:forbidigo // paces this server only
	sh.sync(now)
	sh.mu.Unlock()
	sh.c.answerOnce()
	return nil
}

// answerOnce answers the polls that do not wait and that no shard has rows for.
func (c *claimer) answerOnce() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range slices.Clone(c.waiting) {
		if p.once && !p.taken {
			c.offer(p)
		}
	}
}

// claim serves the first scope that the shard has due routes for. It reports whether there may be more to do.
func (sh *claimShard) claim(ctx context.Context) (bool, error) {
	sh.mu.Lock()
	now := sh.now()
	sh.hinted = map[keys.Route]bool{}
	sh.mu.Unlock()
	polls, routes := sh.c.take(sh, now)
	if len(polls) == 0 {
		return false, nil
	}
	defer sh.c.settle(polls)
	pairs, err := sh.c.s.rows.Pairs(ctx, sh.index, routes, now, lua.MaxPairs)
	if err != nil {
		return false, err
	}
	if len(pairs) == 0 { // a hint that was out of date: the ready set knows
		sh.forget(routes)
		return true, nil
	}
	g, err := sh.serve(ctx, pairs, polls)
	if err != nil {
		return false, err
	}
	sh.learn(g.Routes)
	return true, nil
}

// forget puts off routes on which no run waits by what Redis says, unless a hint came meanwhile. The next reading of
// the ready set says what is true of them.
func (sh *claimShard) forget(routes []keys.Route) {
	const again = 200 * time.Millisecond
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, r := range routes {
		if !sh.hinted[r] {
			sh.due.set(r, sh.now().Add(again))
		}
	}
	sh.hinted = nil
}

// learn notes when the routes that a claim looked at are to be looked at again. A hint that came meanwhile may be
// newer, and stands.
func (sh *claimShard) learn(routes map[keys.Route]time.Time) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for r, at := range routes {
		switch {
		case sh.hinted[r]:
		case at.IsZero():
			sh.due.drop(r)
		default:
			sh.due.set(r, at)
		}
	}
	sh.hinted = nil
}

// serve takes rows for polls, in one script. What it leaves unfilled its worker asks for again.
func (sh *claimShard) serve(ctx context.Context, pairs []outbox.Pair, polls []*poll) (outbox.Granted, error) {
	lease := sh.c.s.Lease()
	takers := make([]outbox.Taker, len(polls))
	share := max(1, (outbox.MaxClaimRows+len(polls)-1)/len(polls))
	for i, p := range polls {
		takers[i] = outbox.Taker{Worker: p.worker, Want: min(p.want, share)}
	}
	g, err := sh.c.s.rows.Take(ctx, sh.index, lease, pairs, takers)
	if err != nil {
		return g, err
	}
	if len(g.Broken) > 0 {
		sh.c.s.log.Error("rows cannot be read", "shard", sh.index, "err", errors.Join(g.Broken...))
	}
	sh.mu.Lock()
	sh.sync(g.Now)
	sh.mu.Unlock()
	for i, p := range polls {
		p.rows = g.Rows[i]
	}
	return g, nil
}

// release gives rows back, claim by claim.
func (s *Server) release(ctx context.Context, rows []outbox.Held) []error {
	byNonce := map[string]outbox.Lease{}
	shard := map[string]int{}
	for _, h := range rows {
		l := byNonce[h.Nonce]
		l.Nonce, l.RunID, l.Route = h.Nonce, string(h.Run.ID), h.Route
		l.Ordinals = append(l.Ordinals, h.Ordinal)
		byNonce[h.Nonce] = l
		shard[h.Nonce] = h.Run.Shard.Index
	}
	var errs []error
	for _, n := range slices.Sorted(maps.Keys(byNonce)) {
		if err := s.rows.Release(ctx, shard[n], byNonce[n]); err != nil {
			errs = append(errs, named("release", umbel.WorkflowID(""), err))
		}
	}
	return errs
}
