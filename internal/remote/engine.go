package remote

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/api/gen/umbel/v1/umbelv1connect"
	"github.com/umbelhq/umbel/internal/wire"
)

// Engine calls one server of a list, and moves to the next when that one is unavailable. Each call tries each server
// at most once; to wait and try again is the caller's business.
type Engine struct {
	servers []server
	current atomic.Uint32 // index into servers
}

var _ umbel.Engine = (*Engine)(nil)

type server struct {
	url      string
	workflow umbelv1connect.WorkflowServiceClient
	worker   umbelv1connect.WorkerServiceClient
}

// maxReplyBytes bounds a reply: a page of 4 MiB, its inputs of as much, and names and cursors.
const maxReplyBytes = 64 << 20

// New returns an engine of the servers at urls, each with a scheme and without a trailing slash; at least one.
// Engines begin at different ones, so that load spreads. The protocol is Connect with protobuf, unless opts say another.
func New(urls []string, hc *http.Client, opts ...connect.ClientOption) *Engine {
	opts = append([]connect.ClientOption{
		connect.WithReadMaxBytes(maxReplyBytes),
		connect.WithAcceptCompression("gzip", nil, nil), // costs more than it saves between machines of one network
	}, opts...)
	e, caller := &Engine{}, refusals{hc}
	for _, u := range urls {
		e.servers = append(e.servers, server{
			url:      u,
			workflow: umbelv1connect.NewWorkflowServiceClient(caller, u, opts...),
			worker:   umbelv1connect.NewWorkerServiceClient(caller, u, opts...),
		})
	}
	e.current.Store(rand.Uint32N(uint32(len(urls)))) //nolint:gosec // spreads load, and a list is short
	return e
}

// patience is how long a server may take to answer, on top of how long it was asked to wait. A machine that vanished
// without closing its connections is given up after that.
const patience = 15 * time.Second

// call makes one call of the seam: on the server at hand, then on each of the others while they are unavailable.
func call[Req, Rep any, MReq, MRep proto.Message](
	ctx context.Context, e *Engine, op string, wait time.Duration, req Req,
	encode func(Req) MReq,
	do func(*server, context.Context, MReq) (MRep, error),
	decode func(MRep) (Rep, error),
) (Rep, error) {
	var none Rep
	if ctx.Err() != nil {
		return none, ended(ctx, op, true)
	}
	m := encode(req)
	var last *umbel.Error
	notApplied := true // by any of the tries
	first := e.current.Load()
	for n := range uint32(len(e.servers)) {
		i := (first + n) % uint32(len(e.servers))
		s := &e.servers[i]
		asked := time.Now()
		rep, err := try(ctx, s, wait, m, do)
		if err == nil {
			reply, err := decode(rep)
			if err != nil {
				return none, &umbel.Error{Code: umbel.CodeInternal, Op: op, Reason: "the reply of " + s.url + " cannot be read", Err: err}
			}
			return reply, nil
		}
		last = translate(ctx, op, s.url, wait, m, err)
		last.NotApplied = last.NotApplied && notApplied
		if last.Code != umbel.CodeUnavailable {
			return none, last
		}
		// a caller who gives up a server that has had its time must not meet it again
		silent := errors.Is(ctx.Err(), context.DeadlineExceeded) && time.Since(asked) >= wait
		if ctx.Err() == nil || silent {
			e.current.CompareAndSwap(i, (i+1)%uint32(len(e.servers)))
		}
		if ctx.Err() != nil {
			return none, last
		}
		notApplied = last.NotApplied
	}
	if len(e.servers) > 1 {
		last = &umbel.Error{
			Code: umbel.CodeUnavailable, Op: op, WorkflowID: last.WorkflowID, Err: last, NotApplied: notApplied,
			Reason: "none of the servers " + e.Servers() + " is available",
		}
	}
	return none, last
}

func try[MReq, MRep any](
	ctx context.Context, s *server, wait time.Duration, m MReq, do func(*server, context.Context, MReq) (MRep, error),
) (MRep, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, min(max(wait, 0), umbel.MaxPollWait)+patience, errSilent)
	defer cancel()
	rep, err := do(s, secret{ctx}, m)
	if err != nil && context.Cause(ctx) == errSilent { //nolint:errorlint // the cause itself
		return rep, errors.Join(errSilent, err)
	}
	return rep, err
}

var errSilent = errors.New("no answer")

// secret is a context whose deadline the server is not told: it would race with the caller's own clock for who says
// that the time is up. The call still ends with the context, and the server sees that.
type secret struct{ context.Context } //nolint:containedctx // it is one

// Deadline implements context.Context.
func (secret) Deadline() (at time.Time, ok bool) { return time.Time{}, false }

// Servers names the servers, the one at hand first.
func (e *Engine) Servers() string {
	at := int(e.current.Load())
	urls := make([]string, len(e.servers))
	for i := range e.servers {
		urls[i] = e.servers[(at+i)%len(e.servers)].url
	}
	return strings.Join(urls, ",")
}

// Begin implements umbel.Starter.
func (e *Engine) Begin(ctx context.Context, r umbel.BeginRequest) (umbel.BeginReply, error) {
	return call(ctx, e, "begin", 0, r, wire.BeginRequest, (*server).begin, wire.ToBeginReply)
}

// Stage implements umbel.Starter.
func (e *Engine) Stage(ctx context.Context, r umbel.StageRequest) (umbel.StageReply, error) {
	return call(ctx, e, "stage", 0, r, wire.StageRequest, (*server).stage, wire.ToStageReply)
}

// Commit implements umbel.Starter.
func (e *Engine) Commit(ctx context.Context, r umbel.CommitRequest) (umbel.CommitReply, error) {
	return call(ctx, e, "start", 0, r, wire.CommitRequest, (*server).commit, wire.ToCommitReply)
}

// Discard implements umbel.Starter.
func (e *Engine) Discard(ctx context.Context, r umbel.DiscardRequest) error {
	_, err := call(ctx, e, "discard", 0, r, wire.DiscardRequest, (*server).discard, wire.ToDiscardReply)
	return err
}

// Poll implements umbel.Poller.
func (e *Engine) Poll(ctx context.Context, r umbel.PollRequest) (umbel.PollReply, error) {
	return call(ctx, e, "poll", r.Wait, r, wire.PollRequest, (*server).poll, wire.ToPollReply(r))
}

// Leave implements umbel.Poller. It asks every server: the polls may wait at any of them. One answer will do.
func (e *Engine) Leave(ctx context.Context, r umbel.LeaveRequest) error {
	errs := make([]error, len(e.servers))
	var asked sync.WaitGroup
	for i := range e.servers {
		asked.Go(func() {
			one := &Engine{servers: e.servers[i : i+1]}
			_, errs[i] = call(ctx, one, "leave", 0, r, wire.LeaveRequest, (*server).leave, wire.ToLeaveReply)
		})
	}
	asked.Wait()
	if slices.Contains(errs, nil) {
		return nil
	}
	return errs[e.current.Load()]
}

// Renew implements umbel.Poller.
func (e *Engine) Renew(ctx context.Context, r umbel.RenewRequest) (umbel.RenewReply, error) {
	return call(ctx, e, "renew", 0, r, wire.RenewRequest, (*server).renew, wire.ToRenewReply)
}

// Report implements umbel.Poller.
func (e *Engine) Report(ctx context.Context, r umbel.ReportRequest) (umbel.ReportReply, error) {
	return call(ctx, e, "report", 0, r, wire.ReportRequest, (*server).report, wire.ToReportReply)
}

// Describe implements umbel.Gatherer.
func (e *Engine) Describe(ctx context.Context, r umbel.DescribeRequest) (umbel.DescribeReply, error) {
	return call(ctx, e, "describe", r.Wait, r, wire.DescribeRequest, (*server).describe, wire.ToDescribeReply)
}

// Results implements umbel.Gatherer.
func (e *Engine) Results(ctx context.Context, r umbel.ResultsRequest) (umbel.ResultsReply, error) {
	return call(ctx, e, "results", r.Wait, r, wire.ResultsRequest, (*server).results, wire.ToResultsReply)
}

// Cancel implements umbel.Operator.
func (e *Engine) Cancel(ctx context.Context, r umbel.CancelRequest) (umbel.CancelReply, error) {
	return call(ctx, e, "cancel", 0, r, wire.CancelRequest, (*server).cancel, wire.ToCancelReply)
}

// History implements umbel.Operator.
func (e *Engine) History(ctx context.Context, r umbel.HistoryRequest) (umbel.HistoryReply, error) {
	return call(ctx, e, "history", r.Wait, r, wire.HistoryRequest, (*server).history, wire.ToHistoryReply)
}

// List implements umbel.Operator.
func (e *Engine) List(ctx context.Context, r umbel.ListRequest) (umbel.ListReply, error) {
	return call(ctx, e, "list", 0, r, wire.ListRequest, (*server).list, wire.ToListReply)
}
