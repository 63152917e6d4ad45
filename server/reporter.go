package server

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/history"
	"github.com/umbelhq/umbel/outbox"
)

// reporter settles a shard's reports. It has one round trip under way; what arrives meanwhile, from any worker,
// goes in the next, so that batches grow under load.
type reporter struct {
	s     *Server
	shard int
	kick  chan struct{}

	mu     sync.Mutex
	queue  []*pending
	closed bool
}

// pending is a row that is to be settled, and who wants to know.
type pending struct {
	history.Settled
	run       *outbox.Run
	answer    func(history.Answer, error)
	abandoned *atomic.Bool // its call has ended
}

// maxSettleBytes bounds the results and failures of one script.
const maxSettleBytes = 1 << 20

// maxBatches bounds the scripts of one round trip: each is of another run.
const maxBatches = 32

func (r *reporter) add(p *pending) {
	r.mu.Lock()
	closed := r.closed
	if !closed {
		r.queue = append(r.queue, p)
	}
	r.mu.Unlock()
	if closed {
		p.answer(history.Answer{}, errClosed("report"))
	}
}

// wake makes the reporter look at its queue, if there is something in it.
func (r *reporter) wake() {
	r.mu.Lock()
	empty := len(r.queue) == 0
	r.mu.Unlock()
	if empty {
		return
	}
	select {
	case r.kick <- struct{}{}:
	default:
	}
}

// close refuses what is queued and what comes.
func (r *reporter) close() {
	r.mu.Lock()
	queue := r.queue
	r.queue, r.closed = nil, true
	r.mu.Unlock()
	for _, p := range queue {
		p.answer(history.Answer{}, errClosed("report"))
	}
}

func (r *reporter) run(ctx context.Context) {
	r.wake() // what was queued when the loop panicked
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.kick:
		}
		for {
			batches := r.next()
			if len(batches) == 0 {
				break
			}
			r.settle(ctx, batches)
		}
	}
}

// errAbandoned is told to nobody: the call that would hear it has ended.
var errAbandoned = &umbel.Error{Code: umbel.CodeUnavailable, Op: "report", NotApplied: true, Reason: "the call has ended"}

// next takes from the queue what goes in one round trip: rows of each run together, each ordinal once.
func (r *reporter) next() [][]*pending {
	r.mu.Lock()
	defer r.mu.Unlock()
	type load struct {
		rows     []*pending
		ordinals map[int64]bool
		bytes    int
	}
	loads := map[*outbox.Run]*load{}
	var order []*load
	var rest []*pending
	for i, p := range r.queue {
		if p.abandoned.Load() {
			p.answer(history.Answer{}, errAbandoned)
			continue
		}
		l := loads[p.run]
		if l == nil {
			if len(order) == maxBatches {
				rest = append(rest, r.queue[i:]...)
				break
			}
			l = &load{ordinals: map[int64]bool{}}
			loads[p.run] = l
			order = append(order, l)
		}
		size := sizeOf(p.Result, p.Failure)
		if len(l.rows) == outbox.MaxSettle || l.ordinals[p.Ordinal] || len(l.rows) > 0 && l.bytes+size > maxSettleBytes {
			rest = append(rest, p)
			continue
		}
		l.rows = append(l.rows, p)
		l.ordinals[p.Ordinal] = true
		l.bytes += size
	}
	r.queue = rest
	out := make([][]*pending, len(order))
	for i, l := range order {
		// the script sets the bits of neighbours in one piece
		slices.SortFunc(l.rows, func(a, b *pending) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
		out[i] = l.rows
	}
	return out
}

// settle applies batches and answers their rows. Whatever happens, each row is answered once.
func (r *reporter) settle(ctx context.Context, batches [][]*pending) {
	answered := make([]bool, len(batches))
	defer func() { // a panic on the way must not leave a call waiting
		for i, rows := range batches {
			if !answered[i] {
				for _, p := range rows {
					p.answer(history.Answer{}, &umbel.Error{Code: umbel.CodeInternal, Op: "report", Reason: "the server failed; see its log"})
				}
			}
		}
	}()
	in := make([]history.Batch, len(batches))
	for i, rows := range batches {
		in[i] = history.Batch{Run: rows[0].run, Rows: make([]history.Settled, len(rows))}
		for j, p := range rows {
			in[i].Rows[j] = p.Settled
		}
	}
	answers, errs := r.s.history.Settle(ctx, in)
	for i, rows := range batches {
		answered[i] = true
		for j, p := range rows {
			if errs[i] != nil {
				p.answer(history.Answer{}, errs[i])
			} else {
				if answers[i].Rows[j].Code == history.Accepted { // a repeat of a report has been counted
					r.s.claimer.deliver.done(p.Nonce)
				}
				p.answer(answers[i].Rows[j], nil)
			}
		}
		if errs[i] == nil {
			r.s.watchers.notify(rows[0].run.ID, answers[i].Closed != "")
		}
	}
}
