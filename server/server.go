// Package server is Umbel's server as a library: [Open] returns an umbel.Engine on a Redis. It is thin: all
// state is in Redis, so that any number of servers work on one, and any of them may end at any time.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/history"
	"github.com/umbelhq/umbel/outbox"
)

// Server serves clients and workers in its process. It is safe for concurrent use. Close it when nothing uses
// it any more.
type Server struct {
	cfg     Config
	log     *slog.Logger
	rdb     redis.UniversalClient
	rows    *outbox.Redis
	history *history.Redis

	lease     atomic.Int64 // time.Duration
	claimer   *claimer
	reporters []*reporter
	watchers  watchers
	memory    memory

	stop    context.CancelFunc
	running sync.WaitGroup
	closed  chan struct{}
	once    sync.Once

	drained  chan struct{} // closed: polls and waits end
	draining sync.Once
}

var _ umbel.Engine = (*Server)(nil)

// Open starts a server on rdb: a client of a single server, of Sentinel or of a Cluster, Redis 6.2 or newer or
// what speaks its protocol. The client stays the caller's, and must outlive the server. Open founds the
// installation if there is none; it refuses one whose format is newer than this version with
// umbel.ErrUnsupported, and values out of range with umbel.ErrInvalid. ctx bounds Open alone.
func Open(ctx context.Context, rdb redis.UniversalClient, cfg Config) (*Server, error) {
	if rdb == nil {
		return nil, umbel.Invalid("redis client", "nil", "must not be nil: pass redis.NewClient(…)")
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	rows, err := outbox.NewRedis(ctx, rdb, cfg.options())
	if err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, log: cfg.logger(), rdb: rdb, rows: rows, history: history.NewRedis(rows), closed: make(chan struct{}),
		drained: make(chan struct{}),
	}
	s.watchers.runs = map[umbel.RunID]*watched{}
	if err := s.agreeOnLease(ctx); err != nil {
		return nil, err
	}
	s.sayDurability(ctx)
	loops, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = cancel
	s.claimer = newClaimer(s)
	for i := range rows.Space().Shards() {
		r := &reporter{s: s, shard: i, kick: make(chan struct{}, 1)}
		s.reporters = append(s.reporters, r)
		s.loop(loops, "report", r.run)
		s.loop(loops, "claim", s.claimer.shards[i].run)
	}
	s.loop(loops, "deliver", s.claimer.deliver.run)
	s.loop(loops, "wake", s.listen)
	s.loop(loops, "sweep", s.sweep)
	s.loop(loops, "look out", s.lookOut)
	return s, nil
}

// loop runs a background loop until ctx ends. A loop that panics is started again: the others, and the calls,
// must not end with it.
func (s *Server) loop(ctx context.Context, name string, run func(context.Context)) {
	const pause = 100 * time.Millisecond // a loop that panics at once must not spin
	s.running.Go(func() {
		for ctx.Err() == nil {
			if s.guarded(ctx, name, run) {
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	})
}

// guarded runs a loop once; false if it panicked.
func (s *Server) guarded(ctx context.Context, name string, run func(context.Context)) (ended bool) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("background loop panicked and is started again", "loop", name, "err", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	run(ctx)
	return true
}

// Close ends the server: polls and waits return with umbel.ErrUnavailable, and calls that are under way end.
// What workers hold stays claimed until they report it to another server or their lease lapses. A second Close
// does nothing.
func (s *Server) Close() error {
	s.once.Do(func() {
		close(s.closed)
		s.stop()
		s.claimer.close()
		for _, r := range s.reporters {
			r.close()
		}
	})
	s.running.Wait()
	return nil
}

// Lease returns the lease in force.
func (s *Server) Lease() time.Duration { return time.Duration(s.lease.Load()) }

// open returns the error of a closed server, and of a context that has ended.
func (s *Server) open(ctx context.Context, op string) error {
	select {
	case <-s.closed:
		return errClosed(op)
	default:
	}
	if ctx.Err() != nil {
		return ended(ctx, op)
	}
	return nil
}

func errClosed(op string) error {
	return &umbel.Error{Code: umbel.CodeUnavailable, Op: op, Reason: "the server is closed", NotApplied: true}
}

// ended is the error of a call whose context ended.
func ended(ctx context.Context, op string) error {
	return &umbel.Error{Code: umbel.CodeUnavailable, Op: op, Err: context.Cause(ctx)}
}

// named puts the call's name and the workflow on an error, once.
func named(op string, id umbel.WorkflowID, err error) error {
	if err == nil {
		return nil
	}
	e, ok := errors.AsType[*umbel.Error](err)
	if !ok {
		return outbox.Failure(op, err)
	}
	c := *e
	c.Op = op
	if c.WorkflowID == "" {
		c.WorkflowID = id
	}
	return &c
}
