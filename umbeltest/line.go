package umbeltest

import (
	"context"
	"sync"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/worker"
)

// line is what connects a worker to the server, until it is cut.
type line struct {
	to    worker.Engine
	alive context.Context //nolint:containedctx // the line's own, which ends the calls under way
	hang  context.CancelFunc

	mu    sync.Mutex // no call begins while a cut waits for those under way
	calls sync.WaitGroup
}

var _ worker.Engine = (*line)(nil)

func newLine(ctx context.Context, to worker.Engine) *line {
	l := &line{to: to}
	l.alive, l.hang = context.WithCancel(context.WithoutCancel(ctx))
	return l
}

// cut lets no call through any more. When it returns none is under way.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hang()
	l.calls.Wait()
}

func (l *line) isCut() bool { return l.alive.Err() != nil }

// begin says whether a call may go through. If so, it is calls.Done when it has.
func (l *line) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isCut() {
		return false
	}
	l.calls.Add(1)
	return true
}

// through makes a call of the server; ok is false if the line was cut before its reply was there.
func through[Request, Reply any](ctx context.Context, l *line, r Request, call func(context.Context, Request) (Reply, error)) (reply Reply, ok bool, err error) {
	if !l.begin() {
		return reply, false, nil
	}
	defer l.calls.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.alive, cancel)()
	reply, err = call(ctx, r)
	return reply, !l.isCut(), err
}

// orSilence is through for calls that a dead line never answers.
func orSilence[Request, Reply any](ctx context.Context, l *line, r Request, call func(context.Context, Request) (Reply, error)) (Reply, error) {
	reply, ok, err := through(ctx, l, r, call)
	if ok {
		return reply, err
	}
	<-ctx.Done()
	var none Reply
	return none, &umbel.Error{Code: umbel.CodeUnavailable, Reason: "the worker was killed by umbeltest", Err: context.Cause(ctx)}
}

func (l *line) Poll(ctx context.Context, r umbel.PollRequest) (umbel.PollReply, error) {
	return orSilence(ctx, l, r, l.to.Poll)
}

func (l *line) Leave(ctx context.Context, r umbel.LeaveRequest) error {
	leave := func(ctx context.Context, r umbel.LeaveRequest) (struct{}, error) {
		return struct{}{}, l.to.Leave(ctx, r)
	}
	_, err := orSilence(ctx, l, r, leave)
	return err
}

func (l *line) Renew(ctx context.Context, r umbel.RenewRequest) (umbel.RenewReply, error) {
	return orSilence(ctx, l, r, l.to.Renew)
}

// Report on a dead line tells the worker that its outcomes changed nothing, so that it ends without trying again.
func (l *line) Report(ctx context.Context, r umbel.ReportRequest) (umbel.ReportReply, error) {
	reply, ok, err := through(ctx, l, r, l.to.Report)
	if ok {
		return reply, err
	}
	reply = umbel.ReportReply{Verdicts: make([]umbel.Verdict, len(r.Items))}
	for i := range reply.Verdicts {
		reply.Verdicts[i].Code = umbel.Dropped
	}
	return reply, nil
}

func (l *line) Describe(ctx context.Context, r umbel.DescribeRequest) (umbel.DescribeReply, error) {
	return orSilence(ctx, l, r, l.to.Describe)
}

func (l *line) Results(ctx context.Context, r umbel.ResultsRequest) (umbel.ResultsReply, error) {
	return orSilence(ctx, l, r, l.to.Results)
}
