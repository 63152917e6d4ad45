package server

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/keys"
	"github.com/umbelhq/umbel/outbox"
)

// claimer serves the polls that wait. For each shard one loop has at most one claim under way; what arrives
// meanwhile goes in the next, so that batches grow under load. Polls of one scope are served by one claim.
type claimer struct {
	s       *Server
	shards  []*claimShard
	deliver *deliverer

	mu      sync.Mutex
	waiting []*poll // first come, first served
	turn    int     // of the shard that is woken first for the next poll
	closed  bool

	holding atomic.Int64 // when this server last handed out a row or renewed one, unix ms of its own clock
	hints   atomic.Bool  // wake-ups arrive: the ready sets need to be read only now and then
	heard   atomic.Bool  // Redis allows to publish them
}

// scope is what polls must share to be served together.
type scope struct {
	namespace, queue, node string
	types                  string // sorted, a line each
}

func (s scope) pool() pool { return pool{s.namespace, s.queue} }

// poll is a call of Poll that waits.
type poll struct {
	scope  scope
	types  map[string]bool
	worker string
	want   int
	once   bool // answers as soon as everything that is due was looked at
	rows   []outbox.Held
	done   chan struct{} // closed when rows is final

	// guarded by claimer.mu
	taken    bool // by a shard's loop
	gone     bool // its caller has stopped waiting
	answered bool
}

// admits reports whether rows of a route may be handed to the poll.
func (p *poll) admits(r keys.Route) bool {
	return r.Namespace == p.scope.namespace && r.TaskQueue == p.scope.queue &&
		(r.Node == "" || r.Node == p.scope.node) && p.types[r.Type]
}

func newClaimer(s *Server) *claimer {
	c := &claimer{s: s}
	c.deliver = &deliverer{s: s, claims: map[string]*delivered{}}
	for i := range s.rows.Space().Shards() {
		c.shards = append(c.shards, &claimShard{
			c: c, index: i, kick: make(chan struct{}, 1), due: schedule{}, stale: true,
		})
	}
	return c
}

// Poll implements umbel.Poller. A Wait of 0 claims what is due and answers at once.
func (s *Server) Poll(ctx context.Context, r umbel.PollRequest) (umbel.PollReply, error) {
	rows, err := s.poll(ctx, r)
	if err != nil {
		return umbel.PollReply{}, err
	}
	s.delivered(rows)
	return s.reply(rows), nil
}

// poll claims rows that are still to be delivered, or given back.
func (s *Server) poll(ctx context.Context, r umbel.PollRequest) ([]outbox.Held, error) {
	if err := s.open(ctx, "poll"); err != nil {
		return nil, err
	}
	if err := checkPoll(r); err != nil {
		return nil, named("poll", "", err)
	}
	p := newPoll(r)
	c := s.claimer
	if !c.enter(p) {
		return nil, errClosed("poll")
	}
	wait := r.Wait
	if p.once {
		wait = onceWait
	}
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	var err error
	for err == nil {
		select {
		case <-p.done:
			defer s.running.Done()
			return p.rows, nil
		case <-timeout.C:
			c.leave(p)
		case <-ctx.Done():
			err = ended(ctx, "poll")
		case <-s.drained:
			err = errDraining()
		case <-s.closed:
			err = errClosed("poll")
		}
	}
	c.leave(p)
	go func() { // the caller need not wait for a claim that is under way; what it brings goes back
		defer s.running.Done()
		<-p.done
		c.giveBack(ctx, p.rows)
	}()
	return nil, err
}

// onceWait bounds a poll that does not wait: the time that a look at every shard may take.
const onceWait = 5 * time.Second

func checkPoll(r umbel.PollRequest) error {
	if err := umbel.ValidateName("namespace", r.Namespace); err != nil {
		return err
	}
	if err := umbel.ValidateName("task queue", r.TaskQueue); err != nil {
		return err
	}
	if err := umbel.ValidateLabel("node", r.Node); err != nil {
		return err
	}
	if err := umbel.ValidateName("worker", r.Worker); err != nil {
		return err
	}
	for _, t := range r.Types {
		if err := umbel.ValidateName("activity type", t); err != nil {
			return err
		}
	}
	if len(r.Types) == 0 {
		return umbel.Invalid("activity types", "", "must name at least one: a worker is handed only what it registered")
	}
	if r.MaxRows < 1 || r.MaxRows > umbel.MaxPollRows {
		return umbel.Invalid("rows", strconv.Itoa(r.MaxRows), "must be from 1 to "+strconv.Itoa(umbel.MaxPollRows))
	}
	return umbel.ValidateDuration("wait", r.Wait, 0, umbel.MaxPollWait)
}

func newPoll(r umbel.PollRequest) *poll {
	types := slices.Clone(r.Types)
	slices.Sort(types)
	p := &poll{
		scope: scope{r.Namespace, r.TaskQueue, r.Node, strings.Join(types, "\n")},
		types: make(map[string]bool, len(types)), worker: r.Worker, want: r.MaxRows, once: r.Wait == 0,
		done: make(chan struct{}),
	}
	for _, t := range types {
		p.types[t] = true
	}
	return p
}

// delivered notes that rows have reached their worker.
func (s *Server) delivered(rows []outbox.Held) {
	for _, h := range rows {
		s.claimer.deliver.add(h.Run.Shard.Index, h.Nonce)
	}
}

// reply is what hands out rows.
func (s *Server) reply(rows []outbox.Held) umbel.PollReply {
	reply := umbel.PollReply{Rows: make([]umbel.ClaimedRow, 0, len(rows))}
	for _, h := range rows {
		row, err := s.claimed(h)
		if err != nil {
			s.log.Error("last error of a row cannot be read; the row runs without it",
				"workflow", h.Run.WorkflowID, "row", h.Ordinal, "err", err)
		}
		reply.Rows = append(reply.Rows, row)
	}
	if len(rows) > 0 {
		s.claimer.holds()
	}
	return reply
}

// holds notes that workers of this server hold rows. From then on ready sets are read more often.
func (c *claimer) holds() {
	idle := !c.busy()
	c.holding.Store(time.Now().UnixMilli()) //nolint:forbidigo // paces this server only
	if idle {
		for _, sh := range c.shards {
			sh.wake()
		}
	}
}

// busy reports whether workers of this server hold rows, or held some a moment ago.
func (c *claimer) busy() bool {
	const recent = 5000
	return time.Now().UnixMilli()-c.holding.Load() < recent //nolint:forbidigo // paces this server only
}

// enter adds a poll to those that wait, and wakes the shards that may have rows for it. The server runs until the
// poll is done.
func (c *claimer) enter(p *poll) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.s.running.Add(1)
	c.waiting = append(c.waiting, p)
	if p.once { // wake-ups take a moment: what is due now is in Redis
		for _, sh := range c.shards {
			sh.doubt()
		}
	}
	c.offer(p)
	if len(c.waiting) == 1 && !c.hints.Load() { // from now on ready sets are read more often
		for _, sh := range c.shards {
			sh.wake()
		}
	}
	return true
}

// offer wakes the shards that may have rows for p; a poll that does not wait is answered if there are none.
// c.mu is held.
func (c *claimer) offer(p *poll) {
	some := false
	// Whichever shard runs first takes the poll. Go tends to run first what was woken last: each has its turn at that.
	c.turn++
	for i := range c.shards {
		if sh := c.shards[(c.turn+i)%len(c.shards)]; sh.mayHave(p) {
			some = true
			sh.wake()
		}
	}
	if !some && p.once {
		c.answer(p)
	}
}

// answer makes a poll's rows final. c.mu is held.
func (c *claimer) answer(p *poll) {
	if p.answered {
		return
	}
	p.answered = true
	if i := slices.Index(c.waiting, p); i >= 0 {
		c.waiting = slices.Delete(c.waiting, i, i+1)
	}
	close(p.done)
}

// leave takes a poll out. If a claim for it is under way its rows come with that claim.
func (c *claimer) leave(p *poll) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.gone = true
	if !p.taken {
		c.answer(p)
	}
}

func (c *claimer) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, p := range slices.Clone(c.waiting) {
		if !p.taken {
			c.answer(p)
		}
	}
}

// wanted lists the routes that the polls which wait may be served from.
func (c *claimer) wanted() []keys.Route {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := map[scope]bool{}
	var out []keys.Route
	for _, p := range c.waiting {
		if seen[p.scope] {
			continue
		}
		seen[p.scope] = true
		for t := range p.types {
			r := keys.Route{Namespace: p.scope.namespace, TaskQueue: p.scope.queue, Type: t, Priority: keys.DefaultPriority}
			out = append(out, r)
			if r.Node = p.scope.node; r.Node != "" {
				out = append(out, r)
			}
		}
	}
	return out
}

// take reserves the polls of the first scope that a shard has due routes for, and those routes, the earliest
// first.
func (c *claimer) take(sh *claimShard, now time.Time) ([]*poll, []keys.Route) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var polls []*poll
	var routes []keys.Route
	for _, p := range c.waiting {
		switch {
		case p.taken:
		case polls == nil:
			if routes = sh.dueFor(p, now); len(routes) > 0 {
				p.taken = true
				polls = append(polls, p)
			}
		case p.scope == polls[0].scope && len(polls) < maxTakers:
			p.taken = true
			polls = append(polls, p)
		}
	}
	return polls, routes
}

// maxTakers bounds the polls of one claim script.
const maxTakers = 16

// settle answers the polls that got rows and lets the others wait on.
func (c *claimer) settle(polls []*poll) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range polls {
		p.taken = false
		if len(p.rows) > 0 || p.gone || c.closed {
			c.answer(p)
		} else {
			c.offer(p)
		}
	}
}

// giveBack releases rows that were claimed for a poll whose caller has gone. They have never left this server.
func (c *claimer) giveBack(ctx context.Context, rows []outbox.Held) {
	if len(rows) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTimeout)
	defer cancel()
	for _, err := range c.s.release(ctx, rows) {
		c.s.log.Warn("rows of a poll that went away come back only when their lease lapses", "err", err)
	}
}

const giveBackTimeout = 10 * time.Second
