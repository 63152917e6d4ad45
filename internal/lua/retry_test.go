package lua

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel/internal/testredis"
)

// wireError is an error reply as the client sees it.
type wireError string

func (e wireError) Error() string { return string(e) }
func (wireError) RedisError()     {}

// outage is a client hook that fails the next calls, before or after they reached the server.
type outage struct {
	err   error
	times atomic.Int64
	after bool // the server applies the call and the reply is lost
	calls atomic.Int64
}

func (o *outage) fails() bool { return o.times.Add(-1) >= 0 }

func (*outage) DialHook(next redis.DialHook) redis.DialHook { return next }

func (o *outage) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !strings.HasPrefix(cmd.Name(), "eval") {
			return next(ctx, cmd)
		}
		o.calls.Add(1)
		if !o.fails() {
			return next(ctx, cmd)
		}
		if o.after {
			_ = next(ctx, cmd)
		}
		cmd.SetErr(o.err)
		return o.err
	}
}

func (o *outage) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		o.calls.Add(1)
		if !o.fails() {
			return next(ctx, cmds)
		}
		if o.after {
			_ = next(ctx, cmds)
		}
		for _, cmd := range cmds {
			cmd.SetErr(o.err)
		}
		return o.err
	}
}

// inOutage runs f in virtual time on a Redis whose scripts fail so many times.
func inOutage(t *testing.T, err error, times int64, f func(t *testing.T, w *world, o *outage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testredis.Mini(t))
		o := &outage{err: err}
		w.rdb.AddHook(o)
		fan := w.started(4, 4, "a")
		o.calls.Store(0)
		o.times.Store(times)
		f(t, w, o)
		o.times.Store(0)
		fan.world = w
		w.check()
	})
}

var passingErrors = []error{
	wireError("LOADING Redis is loading the dataset in memory"),
	wireError("READONLY You can't write against a read only replica."),
	wireError("READONLY You can't write against a read only replica. script: abc, on @user_script:1."),
	wireError("TRYAGAIN Multiple keys request during rehashing of slot"),
	wireError("CLUSTERDOWN The cluster is down"),
	wireError("CLUSTERDOWN Hash slot not served"),
	wireError("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."),
	wireError("MOVED 3999 127.0.0.1:6381"),
	wireError("ERR max number of clients reached"),
	io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, redis.ErrPoolTimeout,
	&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
	fmt.Errorf("wrapped: %w", &net.OpError{Op: "read", Err: syscall.ECONNRESET}),
}

func TestPassingErrorsAreRetried(t *testing.T) {
	t.Parallel()
	for _, err := range passingErrors {
		t.Run(err.Error(), func(t *testing.T) {
			t.Parallel()
			inOutage(t, err, 6, func(t *testing.T, w *world, o *outage) {
				f := w.fans[0]
				n := f.take(0, 2, long, "0-1")
				if o.calls.Load() < 7 {
					t.Errorf("%d calls", o.calls.Load())
				}
				o.times.Store(4)
				replies, errs := w.s.RunAll(t.Context(), []Call{
					f.settleCall(group(Complete, n, 0)).Call(), f.settleCall(group(Complete, n, 1)).Call(),
				})
				for i := range errs {
					if errs[i] != nil || replies[i].Outcome != "ok" {
						t.Errorf("RunAll: %+v, %v", replies[i], errs[i])
					}
				}
				o.times.Store(4)
				g := w.fan(4, "a")
				p := g.stageCall(0, rows{n: 2})
				g.next = 2
				in := must(w.s.RunInOrder(t.Context(), []Call{p.Call(), g.commitCall().Call()}))(t)
				if len(in) != 2 || in[0].Outcome != "ok" || in[1].Outcome != "ok" {
					t.Errorf("RunInOrder: %+v", in)
				}
				o.times.Store(4)
				i := 0
				err := w.s.Retry(t.Context(), func() error {
					if i++; i < 4 {
						return o.err
					}
					return nil
				})
				if err != nil {
					t.Errorf("Retry: %v", err)
				}
			})
		})
	}
}

// Redis applied the call and the reply was lost: the second time changes nothing.
func TestLostReplies(t *testing.T) {
	t.Parallel()
	inOutage(t, io.EOF, 0, func(t *testing.T, w *world, o *outage) {
		o.after = true
		for _, s := range all { // a call that the server does not know is not applied
			must(w.rdb.ScriptLoad(t.Context(), s.source).Result())(t)
		}
		f := w.fan(4, "a")
		lose := func() { o.times.Store(2) }
		p := f.stageCall(0, rows{n: 4})
		f.next, f.view = 4, p.After
		lose()
		wantEqual(t, "stage", must(w.s.Stage(t.Context(), p))(t).Outcome, "again")
		lose()
		wantEqual(t, "commit", f.runCommit(f.commitCall()).Outcome, "again")
		lose()
		c := w.claimCall(long, []Taker{{nonce(), 3, "w"}}, f.pair(0))
		wantEqual(t, "claim", must(w.s.Claim(t.Context(), c))(t).Outcome, "again")
		n := Nonce(c.Takers[0].Nonce, 0)
		lose()
		wantEqual(t, "renew", w.renew(f.hold(n, 0, 1, 2)), []string{"hhh"})
		lose()
		r := f.runSettle(f.settleCall(group(Complete, n, 0)))
		wantEqual(t, "settle", r.Exceptions, []Exception{{0, 0, 'd', 1}})
		lose()
		r = f.runSettle(f.settleCall(group(Requeue, n, 1)))
		wantEqual(t, "requeue", r.Exceptions, []Exception{{0, 0, 's', 0}})
		lose()
		wantEqual(t, "cancel", must(w.s.Cancel(t.Context(), f.cancelCall()))(t).Outcome, "closed")

		g := w.fan(4, "a")
		g.token("me")
		s := g.staging()
		s.stage(rows{n: 2})
		lose()
		wantEqual(t, "dispatch", g.dispatch(s, Fence{Token: "me"}), DispatchReply{Outcome: "ok", Number: 4})
		lose()
		wantEqual(t, "append", must(w.s.Append(t.Context(), g.appendCall(Fence{Token: "me", Head: 4}, "a;")))(t),
			AppendReply{Outcome: "ok", Head: 5})
	})
}

func TestOtherErrorsAreNotRetried(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		wireError("ERR wrong number of arguments"), wireError("OOM command not allowed when used memory > 'maxmemory'."),
		wireError("NOPERM this user has no permissions"), wireError("WRONGTYPE Operation against a key"),
		redis.ErrClosed, context.Canceled, errors.New("loading it went wrong"),
	} {
		inOutage(t, err, 1, func(t *testing.T, w *world, o *outage) {
			_, got := w.s.Sweep(t.Context(), w.sweepCall(1))
			if !errors.Is(got, err) || !strings.HasPrefix(got.Error(), "lua: sweep: ") {
				t.Errorf("%v: %v", err, got)
			}
			wantEqual(t, err.Error(), o.calls.Load(), int64(1))
			wantEqual(t, err.Error()+": away", Away(err), errors.Is(err, redis.ErrClosed) || errors.Is(err, context.Canceled))
		})
	}
}

func TestPatienceEnds(t *testing.T) {
	t.Parallel()
	inOutage(t, passingErrors[0], 1<<40, func(t *testing.T, w *world, o *outage) {
		begin := time.Now()
		_, err := w.s.Sweep(t.Context(), w.sweepCall(1))
		if took := time.Since(begin); !errors.Is(err, o.err) || !Away(err) || took < Patience*8/10 || took > Patience*11/10 {
			t.Errorf("after %v: %v", took, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin = time.Now()
		_, err = w.s.Sweep(ctx, w.sweepCall(1))
		if took := time.Since(begin); err == nil || took > time.Second {
			t.Errorf("after %v: %v", took, err)
		}
		if !Away(err) {
			t.Errorf("%v is not away", err)
		}
		ctx, cancel = context.WithCancel(t.Context())
		cancel()
		if _, err = w.s.Sweep(ctx, w.sweepCall(1)); err == nil {
			t.Error("no error from a call that was cancelled")
		}
	})
}

// A server that is down comes back while the call waits.
func TestCallsOutliveARestart(t *testing.T) {
	t.Parallel()
	r := testredis.Real(t, testredis.AppendOnly("always"))
	w := newWorld(t, r)
	f := w.started(4, 4, "a")
	r.Kill(t)
	done := make(chan error, 1)
	go func() {
		_, err := w.s.Sweep(t.Context(), w.sweepCall(1))
		done <- err
	}()
	r.Restart(t)
	if err := <-done; err != nil {
		t.Error(err)
	}
	f.take(0, 4, long, "0-3")
	w.check()
}
