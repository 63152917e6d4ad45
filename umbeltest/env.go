package umbeltest

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/internal/memredis"
	"github.com/umbelhq/umbel/server"
	"github.com/umbelhq/umbel/worker"
)

// Env is a server on an empty Redis, both inside the test's process, with what works on it. Make it with [New]; it
// ends with its test. Its methods may be called from any goroutine, but for those that say otherwise.
type Env struct {
	tb      testing.TB
	virtual bool // time is a bubble's
	log     *slog.Logger
	server  *server.Server
	client  *client.Client

	mu    sync.Mutex
	lines map[*worker.Worker]*line
}

// New starts a server for tb. Its lease is that of a production server, [umbel.DefaultLease].
//
// Inside synctest.Test everything runs in the bubble and in its time, which [Env.Advance] moves. tb is then the T that
// the bubble's function was given. Outside of it time is real.
//
// When the test ends the workers are stopped, then server and Redis. What they have to say goes to tb's output,
// each line with the time since New.
func New(tb testing.TB) *Env {
	tb.Helper()
	e := &Env{tb: tb, virtual: inBubble(), log: newLogger(tb), lines: map[*worker.Worker]*line{}}
	if e.virtual && !ofBubble(tb) {
		tb.Fatal("umbeltest: New was called in a bubble with the T from outside of it: pass the T that synctest.Test passes to its function")
	}
	redis := memredis.Open()
	tb.Cleanup(redis.Close)
	var err error
	if e.server, err = server.Open(tb.Context(), redis.Client(), server.Config{Shards: 1, Logger: e.log}); err != nil {
		tb.Fatalf("umbeltest: %v", err)
	}
	tb.Cleanup(func() { _ = e.server.Close() })
	if e.client, err = client.New(e.server, client.Config{Logger: e.log}); err != nil {
		tb.Fatalf("umbeltest: %v", err)
	}
	return e
}

// Client returns a client of the default namespace.
func (e *Env) Client() *client.Client { return e.client }

// Engine returns the server, for client.New with a namespace and for what no client does.
func (e *Env) Engine() umbel.Engine { return e.server }

// Worker makes a worker on the server; register handlers, then start it with [Env.Go]. Without a Logger it logs to the
// test's output. It fails the test at once if c is not valid, so call it from the test's goroutine.
func (e *Env) Worker(c worker.Config) *worker.Worker {
	e.tb.Helper()
	if c.Logger == nil {
		c.Logger = e.log
	}
	l := newLine(e.tb.Context(), e.server)
	w, err := worker.New(l, c)
	if err != nil {
		e.tb.Fatalf("umbeltest: %v", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lines[w] = l
	return w
}

// Go runs a worker from [Env.Worker] until the test ends, unless it is stopped or killed before. At the test's end the
// contexts of handlers that still run end with [umbel.ErrWorkerStopping]; they have five seconds to return. The test
// fails if the worker's Run returns an error, as it does when they do not. Call Go once for a worker, from the test's
// goroutine.
func (e *Env) Go(w *worker.Worker) {
	e.tb.Helper()
	l := e.line(w)
	if l == nil {
		e.tb.Fatal("umbeltest: Go of a worker that another made: make it with Env.Worker")
	}
	ctx := context.WithoutCancel(e.tb.Context())
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		err := w.Run(ctx)
		if err != nil && !l.isCut() && !errors.Is(err, worker.ErrStopped) { // a test may end before its worker begins
			e.tb.Errorf("umbeltest: %v", err)
		}
	}()
	e.tb.Cleanup(func() {
		_ = w.Stop(ctx)
		<-ran
	})
}

// Kill ends a worker from [Env.Worker] as if its process had died: no call of it reaches the server any more. Nothing
// is released and nothing reported; its rows come back when their lease lapses. What the server was sent before holds.
//
// Goroutines cannot be killed: handlers that run see their context end with [umbel.ErrWorkerStopping], and what they
// return goes nowhere. Kill does not wait for them, and a handler, or an [umbel.Interceptor], may kill its own worker.
// Killing a worker twice, or one that never ran, does nothing more.
func (e *Env) Kill(w *worker.Worker) {
	e.tb.Helper()
	l := e.line(w)
	if l == nil {
		e.tb.Error("umbeltest: Kill of a worker that another made: make it with Env.Worker")
		return
	}
	l.cut()
	atOnce, cancel := context.WithCancel(e.tb.Context())
	cancel() // Stop gives the word and does not wait
	_ = w.Stop(atOnce)
}

// Advance moves the bubble's time by d, and lets everything happen that is due until then: polls, renewals, sweeps of
// lapsed leases, retries, timeouts. When it returns every goroutine of the bubble waits for something later, or for
// the test. Advance(0) only waits for that.
//
// Time moves by itself while the test waits, in Gather for instance; Advance is for tests that look at what is on its
// way. Outside a bubble it fails the test at once. Call it from the test's goroutine.
func (e *Env) Advance(d time.Duration) {
	e.tb.Helper()
	if !e.virtual {
		e.tb.Fatal("umbeltest: Advance moves virtual time only: wrap the test in synctest.Test(t, func(t *testing.T) { … }) and call umbeltest.New in there")
	}
	advance(d)
}

func (e *Env) line(w *worker.Worker) *line {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lines[w]
}
