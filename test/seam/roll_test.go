package seam

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/internal/memnet"
	"github.com/umbelhq/umbel/internal/testredis"
	"github.com/umbelhq/umbel/server"
	"github.com/umbelhq/umbel/worker"
)

// Must show 3: both servers are restarted in turn under load: no call fails, and every row ends with attempt 1.
func TestRollingRestart(t *testing.T) {
	for name, h2 := range map[string]bool{"http1": false, "h2c": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n memnet.Network
				roll(t, testredis.Mini(t), []string{"a:1", "b:1"}, 3*idle, n.Listen, transport(&n, h2))
			})
		})
	}
}

// The same with real sockets and a real Redis.
func TestRollingRestartOnRedis(t *testing.T) {
	t.Parallel()
	for name, h2 := range map[string]bool{"http1": false, "h2c": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var at []string
			for range 2 {
				l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				at = append(at, l.Addr().String())
				_ = l.Close()
			}
			p := new(http.Protocols)
			p.SetHTTP1(!h2)
			p.SetUnencryptedHTTP2(h2)
			listen := func(address string) (net.Listener, error) {
				return new(net.ListenConfig).Listen(context.WithoutCancel(t.Context()), "tcp", address)
			}
			roll(t, testredis.Shared(t), at, 10*idle, listen, &http.Transport{Protocols: p, MaxIdleConnsPerHost: 100})
		})
	}
}

// idle is how long the polls of [roll] wait that bring nothing.
const idle = 100 * time.Millisecond

// roll restarts the servers of two addresses, twice each and so far apart, while a worker, a client and others call them.
func roll(t *testing.T, r *testredis.Redis, at []string, apart time.Duration, listen func(string) (net.Listener, error), tr *http.Transport) {
	t.Helper()
	start := func(address string) *node {
		s, err := server.Open(t.Context(), r.NewClient(t), server.Config{Prefix: r.Prefix, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		l, err := listen(address)
		if err != nil {
			t.Fatal(err)
		}
		return serveOn(t, s, l)
	}
	nodes := []*node{start(at[0]), start(at[1])}
	e := &strict{Engine: dial(t, tr, at[0]+","+at[1]), t: t}

	log := slog.New(slog.DiscardHandler)
	w, err := worker.New(e, worker.Config{Concurrency: 8, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	double := umbel.Define[int, int]("double", umbel.Retry(umbel.RetryPolicy{MaxAttempts: 1}))
	worker.Handle(w, double, func(_ context.Context, in int) (int, error) {
		time.Sleep(10 * time.Millisecond)
		return 2 * in, nil
	})
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		_ = w.Run(context.WithoutCancel(t.Context()))
	}()

	c, err := client.New(e, client.Config{Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	var over atomic.Bool
	var starts atomic.Int64
	running.Go(func() { // starts one fan-out after the other
		for ; !over.Load(); starts.Add(1) {
			in := []int{1, 2, 3, 4, 5}
			got, err := client.FanOut(t.Context(), c, double, slices.Values(in), client.WorkflowID(umbel.WorkflowID(strconv.FormatInt(starts.Load(), 10))))
			if err != nil {
				t.Error(err)
				return
			}
			for res, err := range got.Results(t.Context()) {
				if err != nil || res.Err != nil || res.Attempt != 1 {
					t.Errorf("%+v, %v", res, err)
				}
			}
		}
	})
	for range 4 {
		running.Go(func() { // waits for what never closes, and for workers that have nothing to do
			for !over.Load() {
				_, _ = e.List(t.Context(), umbel.ListRequest{Namespace: ns, Limit: 3})
				_, _ = e.Poll(t.Context(), umbel.PollRequest{
					Namespace: ns, TaskQueue: "idle", Types: []string{"idle"}, Worker: "idle", MaxRows: 1, Wait: idle,
				})
			}
		})
	}
	atWork := func() { // so long that no call meets two servers that stop, and a few fan-outs at least
		time.Sleep(apart)
		for before := starts.Load(); starts.Load() < before+3 && !t.Failed(); {
			time.Sleep(10 * time.Millisecond)
		}
	}
	for i := range 4 {
		atWork()
		old := nodes[i%2]
		began := time.Now()
		old.end()
		if old.err != nil || time.Since(began) > server.DrainTimeout {
			t.Errorf("Serve returned %v after %v", old.err, time.Since(began))
		}
		nodes[i%2] = start(at[i%2])
	}
	atWork()
	over.Store(true)
	running.Wait()
	_ = w.Drain(t.Context())
	<-worked
	tr.CloseIdleConnections()
	for _, x := range nodes {
		x.end()
	}
	check(t, r)
}

// strict fails the test when a call that others make fails.
type strict struct {
	umbel.Engine

	t *testing.T
}

func (s *strict) see(err error) {
	if err != nil && s.t.Context().Err() == nil && !errors.Is(err, context.Canceled) {
		s.t.Errorf("a call failed: %v", err)
	}
}

func (s *strict) Commit(ctx context.Context, r umbel.CommitRequest) (umbel.CommitReply, error) {
	rep, err := s.Engine.Commit(ctx, r)
	s.see(err)
	return rep, err
}

func (s *strict) Poll(ctx context.Context, r umbel.PollRequest) (umbel.PollReply, error) {
	rep, err := s.Engine.Poll(ctx, r)
	s.see(err)
	return rep, err
}

func (s *strict) Report(ctx context.Context, r umbel.ReportRequest) (umbel.ReportReply, error) {
	rep, err := s.Engine.Report(ctx, r)
	s.see(err)
	return rep, err
}

func (s *strict) Renew(ctx context.Context, r umbel.RenewRequest) (umbel.RenewReply, error) {
	rep, err := s.Engine.Renew(ctx, r)
	s.see(err)
	return rep, err
}

func (s *strict) Results(ctx context.Context, r umbel.ResultsRequest) (umbel.ResultsReply, error) {
	rep, err := s.Engine.Results(ctx, r)
	s.see(err)
	return rep, err
}

func (s *strict) List(ctx context.Context, r umbel.ListRequest) (umbel.ListReply, error) {
	rep, err := s.Engine.List(ctx, r)
	s.see(err)
	return rep, err
}
