package worker

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
)

// fake is an engine in memory: due rows, claims with leases, verdicts by the rules of the seam, and faults.
type fake struct {
	umbel.Gatherer

	lease   time.Duration
	latency time.Duration // of every call

	mu      sync.Mutex
	changed chan struct{}
	due     []umbel.ClaimedRow
	claims  map[umbel.Token]*claim
	ends    map[int64]umbel.ReportItem // by ordinal: what was recorded
	fails   []umbel.ReportItem         // attempts that failed and were tried again
	lapsed  int
	swept   time.Time
	seq     int64

	onPoll   func(context.Context, umbel.PollRequest) error
	onRenew  func(context.Context, umbel.RenewRequest) error
	onReport func(context.Context, umbel.ReportRequest) error
	verdict  func(umbel.ReportItem) *umbel.Verdict

	polls   []umbel.PollRequest
	brought []int
	leaves  map[string]int // by worker
	renews  []umbel.RenewRequest
	reports []umbel.ReportRequest
}

type claim struct {
	row       umbel.ClaimedRow
	until     time.Time
	gone      bool // resolved, released or lapsed
	cancelled bool
}

func newFake() *fake {
	return &fake{
		lease: umbel.DefaultLease, changed: make(chan struct{}),
		leaves: map[string]int{}, claims: map[umbel.Token]*claim{}, ends: map[int64]umbel.ReportItem{},
	}
}

// add makes n rows of a type due.
func (f *fake) add(n int, row umbel.ClaimedRow) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for range n {
		r := row
		r.Ordinal = f.seq
		f.seq++
		r.Attempt = max(r.Attempt, 1)
		r.Namespace, r.TaskQueue, r.WorkflowID, r.RunID = "default", "default", "wf", "run"
		r.Lease = f.lease
		f.due = append(f.due, r)
	}
	f.broadcast()
}

func (f *fake) broadcast() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// sweep gives rows whose lease lapsed to the next worker. mu is held.
func (f *fake) sweep() {
	now := time.Now()
	if now.Sub(f.swept) < 10*time.Millisecond {
		return
	}
	f.swept = now
	for _, c := range f.claims {
		if !c.gone && now.After(c.until) {
			c.gone = true
			f.lapsed++
			r := c.row
			r.Attempt++
			f.due = append(f.due, r)
		}
	}
}

func (f *fake) Poll(ctx context.Context, r umbel.PollRequest) (umbel.PollReply, error) {
	f.mu.Lock()
	f.polls = append(f.polls, r)
	left := f.leaves[r.Worker]
	hook := f.onPoll
	f.mu.Unlock()
	if hook != nil {
		if err := hook(ctx, r); err != nil {
			return umbel.PollReply{}, err
		}
	}
	f.delay()
	deadline := time.Now().Add(r.Wait)
	for {
		f.mu.Lock()
		f.sweep()
		var rows []umbel.ClaimedRow
		rest := f.due[:0:0]
		for i, row := range f.due {
			if len(rows) == r.MaxRows {
				if rest == nil {
					rest = f.due[i:] // the usual case of one type
				} else {
					rest = append(rest, f.due[i:]...)
				}
				break
			}
			if !slices.Contains(r.Types, row.Type) {
				rest = append(rest, row)
				continue
			}
			row.Token = umbel.Token(fmt.Sprintf("t%d.%d.%d", row.Ordinal, row.Attempt, len(f.claims)))
			f.claims[row.Token] = &claim{row: row, until: time.Now().Add(f.lease)}
			rows = append(rows, row)
		}
		f.due = rest
		changed, leaves := f.changed, f.leaves[r.Worker] > left
		if len(rows) > 0 {
			f.brought = append(f.brought, len(rows))
		}
		f.mu.Unlock()
		wait := time.Until(deadline)
		if len(rows) > 0 || wait <= 0 || leaves {
			return umbel.PollReply{Rows: rows}, nil
		}
		select {
		case <-ctx.Done():
			return umbel.PollReply{}, &umbel.Error{Code: umbel.CodeUnavailable, Err: ctx.Err()}
		case <-changed:
		case <-time.After(min(wait, 100*time.Millisecond)):
		}
	}
}

func (f *fake) Leave(_ context.Context, r umbel.LeaveRequest) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leaves[r.Worker]++
	f.broadcast()
	return nil
}

func (f *fake) delay() {
	if f.latency > 0 {
		time.Sleep(f.latency)
	}
}

func (f *fake) Renew(ctx context.Context, r umbel.RenewRequest) (umbel.RenewReply, error) {
	f.mu.Lock()
	f.renews = append(f.renews, r)
	hook := f.onRenew
	f.mu.Unlock()
	if hook != nil {
		if err := hook(ctx, r); err != nil {
			return umbel.RenewReply{}, err
		}
	}
	f.delay()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sweep()
	var reply umbel.RenewReply
	for _, t := range r.Tokens {
		switch c := f.claims[t]; {
		case c == nil:
			reply.States = append(reply.States, umbel.HoldInvalid)
		case c.cancelled:
			reply.States = append(reply.States, umbel.HoldCancelled)
		case c.gone:
			reply.States = append(reply.States, umbel.HoldLost)
		default:
			c.until = time.Now().Add(f.lease)
			reply.States = append(reply.States, umbel.Held)
		}
	}
	return reply, nil
}

func (f *fake) Report(ctx context.Context, r umbel.ReportRequest) (umbel.ReportReply, error) {
	f.mu.Lock()
	f.reports = append(f.reports, r)
	hook := f.onReport
	f.mu.Unlock()
	if hook != nil {
		if err := hook(ctx, r); err != nil {
			return umbel.ReportReply{}, err
		}
	}
	f.delay()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sweep()
	var reply umbel.ReportReply
	for _, it := range r.Items {
		reply.Verdicts = append(reply.Verdicts, f.record(it))
	}
	f.broadcast()
	return reply, nil
}

func (f *fake) record(it umbel.ReportItem) umbel.Verdict {
	if f.verdict != nil {
		if v := f.verdict(it); v != nil {
			return *v
		}
	}
	c := f.claims[it.Token]
	if c == nil {
		return umbel.Verdict{Code: umbel.Refused, Err: umbel.Invalid("token", string(it.Token), "is unknown")}
	}
	if _, resolved := f.ends[c.row.Ordinal]; resolved || c.cancelled {
		return umbel.Verdict{Code: umbel.Dropped}
	}
	if c.gone && it.Outcome != umbel.OutcomeCompleted {
		return umbel.Verdict{Code: umbel.Stale}
	}
	c.gone = true
	switch {
	case it.Outcome == umbel.OutcomeReleased:
		f.due = append(f.due, c.row)
		return umbel.Verdict{Code: umbel.Released}
	case it.Outcome == umbel.OutcomeFailed && !it.Failure.NonRetryable && c.row.Attempt < 2:
		f.fails = append(f.fails, it)
		r := c.row
		r.Attempt++
		r.LastFailure = it.Failure
		f.due = append(f.due, r)
		return umbel.Verdict{Code: umbel.Retrying}
	}
	f.ends[c.row.Ordinal] = it
	return umbel.Verdict{Code: umbel.Recorded}
}

// cancel cancels every row that is claimed.
func (f *fake) cancel() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.claims {
		c.cancelled = true
	}
}

func (f *fake) end(ordinal int64) umbel.ReportItem {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ends[ordinal]
}

// state returns how many rows are resolved, due, and in somebody's hands.
func (f *fake) state() (ends, due, claimed int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.claims {
		if !c.gone && !c.cancelled {
			claimed++
		}
	}
	return len(f.ends), len(f.due), claimed
}

// set changes f under its lock.
func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// logs counts records by level.
type logs struct {
	mu      sync.Mutex
	records []slog.Record
}

func (l *logs) Enabled(context.Context, slog.Level) bool { return true }
func (l *logs) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logs) WithGroup(string) slog.Handler            { return l }
func (l *logs) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, r)
	return nil
}

func (l *logs) at(level slog.Level) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var ms []string
	for _, r := range l.records {
		if r.Level == level {
			ms = append(ms, r.Message)
		}
	}
	return ms
}

// bundle is a worker on a fake engine.
type bundle struct {
	*Worker
	t      *testing.T
	engine *fake
	logs   *logs
	cancel context.CancelFunc
	ran    chan error
}

func setup(t *testing.T, c Config) *bundle {
	t.Helper()
	b := &bundle{t: t, engine: newFake(), logs: &logs{}, ran: make(chan error, 1)}
	c.Logger = slog.New(b.logs)
	w, err := New(b.engine, c)
	if err != nil {
		t.Fatal(err)
	}
	b.Worker = w
	return b
}

// start runs the worker in the background.
func (b *bundle) start() {
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	go func() { b.ran <- b.Run(ctx) }()
}

// stop ends the worker's context and returns what Run does.
func (b *bundle) stop() error {
	b.cancel()
	return <-b.ran
}

// stopped ends the worker and fails the test unless that went well.
func (b *bundle) stopped() {
	b.t.Helper()
	if err := b.stop(); err != nil {
		b.t.Errorf("Run: %v", err)
	}
	if e := b.logs.at(slog.LevelError); e != nil {
		b.t.Errorf("logged at error: %v", e)
	}
	if s := b.Stats(); s.Held != 0 || s.Busy != 0 || s.Queued != 0 || s.Stuck != 0 {
		b.t.Errorf("left in hand: %+v", s)
	}
}

// echo is a handler that returns its input.
func echo(_ context.Context, in umbel.Payload) (umbel.Payload, error) { return in, nil }

// wait returns once n rows are resolved.
func (f *fake) wait(ctx context.Context, n int) error {
	for {
		f.mu.Lock()
		done, changed := len(f.ends) >= n, f.changed
		f.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}
