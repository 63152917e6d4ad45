package seam

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/internal/testredis"
	"github.com/umbelhq/umbel/server"
	"github.com/umbelhq/umbel/worker"
)

// later is a server of a version to come: it says what this one has no word for.
type later struct {
	umbel.Engine

	reports, renewals atomic.Int64
	status            umbel.Status
	code              umbel.Code
}

func (l *later) Report(ctx context.Context, r umbel.ReportRequest) (umbel.ReportReply, error) {
	l.reports.Add(1)
	reply, err := l.Engine.Report(ctx, r)
	for i := range reply.Verdicts {
		reply.Verdicts[i].Code = 99
	}
	return reply, err
}

func (l *later) Renew(ctx context.Context, r umbel.RenewRequest) (umbel.RenewReply, error) {
	l.renewals.Add(1)
	reply, err := l.Engine.Renew(ctx, r)
	for i := range reply.States {
		reply.States[i] = 99
	}
	return reply, err
}

func (l *later) Describe(ctx context.Context, r umbel.DescribeRequest) (umbel.DescribeReply, error) {
	reply, err := l.Engine.Describe(ctx, r)
	if l.status != "" && err == nil {
		reply.Status = l.status
	}
	return reply, err
}

func (l *later) Cancel(ctx context.Context, r umbel.CancelRequest) (umbel.CancelReply, error) {
	if l.code != "" {
		return umbel.CancelReply{}, &umbel.Error{Code: l.code, Op: "cancel", Reason: "of a later version"}
	}
	return l.Engine.Cancel(ctx, r)
}

// This version's worker and client take what a later server says as news that they do not know: the worker is done with
// the row, a wait ends, an error keeps its code.
func TestLaterServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, redis: testredis.Mini(t)}
		log := slog.New(slog.DiscardHandler)
		s, err := server.Open(t.Context(), w.redis.NewClient(t), server.Config{Prefix: w.redis.Prefix, Logger: log})
		w.ok(err)
		defer s.Close()
		l := &later{Engine: s}
		listener, err := w.net.Listen(address)
		w.ok(err)
		srv := &http.Server{Handler: server.NewHandler(l), ReadHeaderTimeout: time.Minute}
		go func() { _ = srv.Serve(listener) }()
		defer srv.Close()
		e := dial(t, transport(&w.net, false), address)

		work, err := worker.New(e, worker.Config{Logger: log})
		w.ok(err)
		quick := umbel.Define[int, int]("quick")
		long := umbel.Define[int, string]("long")
		worker.Handle(work, quick, func(_ context.Context, in int) (int, error) { return 2 * in, nil })
		worker.Handle(work, long, func(ctx context.Context, _ int) (string, error) {
			<-ctx.Done()
			return context.Cause(ctx).Error(), nil
		})
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			_ = work.Run(context.WithoutCancel(t.Context()))
		}()
		c, err := client.New(e, client.Config{Logger: log})
		w.ok(err)

		got, err := client.FanOut(t.Context(), c, quick, slices.Values([]int{1, 2, 3}), client.WorkflowID("quick"))
		w.ok(err)
		values, err := got.Gather(t.Context())
		if err != nil || !slices.Equal(values, []int{2, 4, 6}) {
			t.Errorf("%v, %v", values, err)
		}
		synctest.Wait()
		if n := work.Stats(); n.Refused != 3 || l.reports.Load() > 3 {
			t.Errorf("three verdicts that nobody knows: %+v, %d reports", n, l.reports.Load())
		}

		said, err := client.Do(t.Context(), c, long, 1)
		if err != nil || said != umbel.ErrLeaseLost.Error() || l.renewals.Load() == 0 {
			t.Errorf("a state that nobody knows: %q, %v", said, err)
		}

		l.status = "continued"
		if err := got.Wait(t.Context()); err != nil { // it is no longer running, and its counts say the rest
			t.Errorf("a status that nobody knows: %v", err)
		}
		l.code = "later_code"
		err = got.Cancel(t.Context(), "")
		if umbel.CodeOf(err) != "later_code" || umbel.SafeToRetry(err) {
			t.Errorf("a code that nobody knows: %v, safe to retry: %t", err, umbel.SafeToRetry(err))
		}
		_ = work.Stop(t.Context())
		<-stopped
	})
}
