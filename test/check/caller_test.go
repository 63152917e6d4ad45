package check

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/umbelhq/umbel"
)

// caller is a worker's or a client's way to the servers, with the faults on it.
type caller struct {
	w     *world
	to    umbel.Engine
	name  string // the worker's identity
	alive context.Context
	die   context.CancelFunc

	mu    sync.Mutex
	conns []net.Conn
	until time.Time // paused

	late sync.WaitGroup // calls that are delivered a second time
}

var _ umbel.Engine = (*caller)(nil)

func (c *caller) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.w.net.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns = append(c.conns, conn)
	return wire{conn}, nil
}

func (c *caller) cut() {
	c.mu.Lock()
	conns := c.conns
	c.conns = nil
	c.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close()
	}
}

func (c *caller) pause(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = time.Now().Add(d)
}

// gate holds up calls and replies of a caller that is paused.
func (c *caller) gate(ctx context.Context) {
	for {
		c.mu.Lock()
		left := time.Until(c.until)
		c.mu.Unlock()
		if left <= 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(left):
		}
	}
}

func unavailable(verb, reason string, err error) error {
	return &umbel.Error{Code: umbel.CodeUnavailable, Op: verb, Reason: reason, Err: err}
}

// through makes a call. seen is told of the reply before it may get lost.
func through[Req, Rep any](
	ctx context.Context, c *caller, verb string, r Req, call func(context.Context, Req) (Rep, error), seen func(sent time.Time, rep Rep),
) (Rep, error) {
	var none Rep
	c.gate(ctx)
	if c.alive.Err() != nil {
		<-ctx.Done()
		return none, unavailable(verb, "the caller was killed", context.Cause(ctx))
	}
	if c.w.take(loseRequest, verb) {
		return none, unavailable(verb, "the request was lost", nil)
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.alive, cancel)()
	sent := time.Now()
	if c.w.take(sendTwice, verb) {
		c.late.Go(func() {
			time.Sleep(c.w.lateness())
			sent := time.Now()
			if rep, err := call(context.WithoutCancel(ctx), r); err == nil && seen != nil {
				seen(sent, rep)
			}
		})
	}
	rep, err := call(inner, r)
	if err == nil && seen != nil {
		seen(sent, rep)
	}
	if err == nil && c.w.take(loseReply, verb) {
		return none, unavailable(verb, "the reply was lost", nil)
	}
	c.gate(ctx)
	if c.alive.Err() != nil {
		<-ctx.Done()
		return none, unavailable(verb, "the caller was killed", context.Cause(ctx))
	}
	return rep, err
}

func (c *caller) Begin(ctx context.Context, r umbel.BeginRequest) (umbel.BeginReply, error) {
	return through(ctx, c, "begin", r, c.to.Begin, nil)
}

func (c *caller) Stage(ctx context.Context, r umbel.StageRequest) (umbel.StageReply, error) {
	return through(ctx, c, "stage", r, c.to.Stage, nil)
}

func (c *caller) Commit(ctx context.Context, r umbel.CommitRequest) (umbel.CommitReply, error) {
	return through(ctx, c, "commit", r, c.to.Commit, func(_ time.Time, rep umbel.CommitReply) { c.w.committed(r, rep) })
}

func (c *caller) Discard(ctx context.Context, r umbel.DiscardRequest) error {
	return orNothing(ctx, c, "discard", r, c.to.Discard)
}

func (c *caller) Poll(ctx context.Context, r umbel.PollRequest) (umbel.PollReply, error) {
	return through(ctx, c, "poll", r, c.to.Poll, func(_ time.Time, rep umbel.PollReply) { c.w.handed(r, rep) })
}

func (c *caller) Leave(ctx context.Context, r umbel.LeaveRequest) error {
	return orNothing(ctx, c, "leave", r, c.to.Leave)
}

func (c *caller) Renew(ctx context.Context, r umbel.RenewRequest) (umbel.RenewReply, error) {
	return through(ctx, c, "renew", r, c.to.Renew, func(sent time.Time, rep umbel.RenewReply) { c.w.renewed(sent, r, rep) })
}

// Report of a caller that is dead tells the worker that its outcomes changed nothing, so that it ends without trying again.
func (c *caller) Report(ctx context.Context, r umbel.ReportRequest) (umbel.ReportReply, error) {
	c.gate(ctx)
	if c.alive.Err() == nil {
		c.w.reporting(r)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(c.alive, cancel)()
		rep, err := through(ctx, c, "report", r, c.to.Report, func(_ time.Time, rep umbel.ReportReply) { c.w.reported(r, rep) })
		if c.alive.Err() == nil {
			return rep, err
		}
	}
	rep := umbel.ReportReply{Verdicts: make([]umbel.Verdict, len(r.Items))}
	for i := range rep.Verdicts {
		rep.Verdicts[i].Code = umbel.Dropped
	}
	return rep, nil
}

func (c *caller) Describe(ctx context.Context, r umbel.DescribeRequest) (umbel.DescribeReply, error) {
	return through(ctx, c, "describe", r, c.to.Describe, nil)
}

func (c *caller) Results(ctx context.Context, r umbel.ResultsRequest) (umbel.ResultsReply, error) {
	return through(ctx, c, "results", r, c.to.Results, nil)
}

func (c *caller) Cancel(ctx context.Context, r umbel.CancelRequest) (umbel.CancelReply, error) {
	return through(ctx, c, "cancel", r, c.to.Cancel, nil)
}

func (c *caller) History(ctx context.Context, r umbel.HistoryRequest) (umbel.HistoryReply, error) {
	return through(ctx, c, "history", r, c.to.History, nil)
}

func (c *caller) List(ctx context.Context, r umbel.ListRequest) (umbel.ListReply, error) {
	return through(ctx, c, "list", r, c.to.List, nil)
}

// orNothing is through for calls that are answered with nothing.
func orNothing[Req any](ctx context.Context, c *caller, verb string, r Req, call func(context.Context, Req) error) error {
	_, err := through(ctx, c, verb, r, func(ctx context.Context, r Req) (struct{}, error) { return struct{}{}, call(ctx, r) }, nil)
	return err
}
