// Package lua holds the scripts that change Umbel's state in Redis, one atomic step each, and a typed Go call
// beside each. Outcomes are data here; packages outbox and history give them meaning.
//
// A script's header is its contract: the keys, the arguments and the replies. A test checks that header and
// body agree, and runs every script on miniredis, on Redis and on a cluster.
package lua

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/redis/go-redis/v9"
)

//go:embed shared.lua
var shared string

// script is one atomic step.
type script struct {
	name   string
	source string // with shared.lua in front
	sha    string
}

func newScript(name, body string) *script {
	src := shared + body
	return &script{name: name, source: src, sha: redis.NewScript(src).Hash()}
}

// Scripts runs the scripts on a Redis. It is safe for concurrent use.
type Scripts struct {
	rdb redis.UniversalClient
}

// New returns the scripts on rdb: a single server, a Sentinel or a Cluster client.
func New(rdb redis.UniversalClient) *Scripts { return &Scripts{rdb: rdb} }

// Redis returns the client, for plain reads.
func (s *Scripts) Redis() redis.UniversalClient { return s.rdb }

// Call is a script with its keys and arguments.
type Call struct {
	script *script
	keys   []string
	args   []any
}

// Patience bounds how long a call is retried while Redis fails over, loads its data or cannot be reached,
// where the context has no nearer end.
const Patience = 10 * time.Second

// Run evaluates one call.
func (s *Scripts) Run(ctx context.Context, c Call) (Reply, error) { return s.run(ctx, c) }

// run evaluates c: by its hash, and by its text where the server does not know it (after SCRIPT FLUSH, a
// restart or a failover). It retries what passes by itself until the context ends or [Patience] is used up;
// every script may be applied twice.
func (s *Scripts) run(ctx context.Context, c Call) (Reply, error) { return s.runFor(ctx, c, Patience) }

// runFor is run with less patience.
func (s *Scripts) runFor(ctx context.Context, c Call, patience time.Duration) (Reply, error) {
	var v any
	err := s.retryFor(ctx, patience, func() (err error) {
		v, err = s.rdb.EvalSha(ctx, c.script.sha, c.keys, c.args...).Result()
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			v, err = s.rdb.Eval(ctx, c.script.source, c.keys, c.args...).Result()
		}
		return err
	})
	return reply(c, v, err)
}

// RunAll evaluates calls in one round trip. They must not depend on each other: one that must be repeated may
// be applied after those behind it. Replies and errors stand at the index of their call. All share one [Patience].
func (s *Scripts) RunAll(ctx context.Context, calls []Call) ([]Reply, []error) {
	replies, errs := make([]Reply, len(calls)), make([]error, len(calls))
	if len(calls) == 1 {
		replies[0], errs[0] = s.run(ctx, calls[0])
		return replies, errs
	}
	pipe := s.rdb.Pipeline()
	cmds := make([]*redis.Cmd, len(calls))
	for i, c := range calls {
		cmds[i] = pipe.EvalSha(ctx, c.script.sha, c.keys, c.args...)
	}
	_, _ = pipe.Exec(ctx) // every command has its own error
	begun := time.Now()
	for i, c := range calls {
		v, err := cmds[i].Result()
		left := Patience - time.Since(begun)
		if redis.HasErrorPrefix(err, "NOSCRIPT") || passing(err) && left > 0 {
			replies[i], errs[i] = s.runFor(ctx, c, left)
			continue
		}
		replies[i], errs[i] = reply(c, v, err)
	}
	return replies, errs
}

// RunInOrder evaluates calls in one round trip, each of which needs the one before. It stops at the first
// error; the replies before it are returned. All keys must be in one slot.
func (s *Scripts) RunInOrder(ctx context.Context, calls []Call) ([]Reply, error) {
	pipe := s.rdb.Pipeline()
	cmds := make([]*redis.Cmd, len(calls))
	for i, c := range calls {
		cmds[i] = pipe.EvalSha(ctx, c.script.sha, c.keys, c.args...)
	}
	_, _ = pipe.Exec(ctx) // every command has its own error
	replies := make([]Reply, 0, len(calls))
	again := false
	for i, c := range calls {
		v, err := cmds[i].Result()
		// what came after a call that was not applied ran on the wrong state, and is applied again in order
		again = again || redis.HasErrorPrefix(err, "NOSCRIPT") || passing(err)
		var r Reply
		if again {
			r, err = s.run(ctx, c)
		} else {
			r, err = reply(c, v, err)
		}
		if err != nil {
			return replies, err
		}
		replies = append(replies, r)
	}
	return replies, nil
}

func reply(c Call, v any, err error) (Reply, error) {
	if err != nil {
		return Reply{}, fmt.Errorf("lua: %s: %w", c.script.name, err)
	}
	vals, ok := v.([]any)
	if !ok || len(vals) == 0 {
		return Reply{}, fmt.Errorf("lua: %s: reply has the shape %T, want a list", c.script.name, v)
	}
	outcome, ok := vals[0].(string)
	if !ok {
		return Reply{}, fmt.Errorf("lua: %s: reply begins with %T, want a word", c.script.name, vals[0])
	}
	return Reply{script: c.script.name, Outcome: outcome, vals: vals}, nil
}

// Retry repeats a plain read as scripts are repeated.
func (s *Scripts) Retry(ctx context.Context, read func() error) error { return s.retry(ctx, read) }

func (s *Scripts) retry(ctx context.Context, try func() error) error {
	return s.retryFor(ctx, Patience, try)
}

func (s *Scripts) retryFor(ctx context.Context, patience time.Duration, try func() error) error {
	err := try()
	if !passing(err) || patience <= 0 { // the usual case pays for no timer
		return err
	}
	wait := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(5*time.Millisecond), backoff.WithMaxInterval(500*time.Millisecond),
		backoff.WithMaxElapsedTime(patience))
	return backoff.Retry(func() error {
		if err := try(); err != nil && !passing(err) {
			return backoff.Permanent(err)
		} else if err != nil {
			return err
		}
		return nil
	}, backoff.WithContext(wait, ctx))
}

// passing reports whether err says nothing about the call and goes by: a failover, a slot that migrates, a server that
// loads its data, has no connection left, runs somebody's script for too long, lacks replicas or cannot save, a
// connection that broke.
func passing(err error) bool {
	if err == nil || errors.Is(err, redis.Nil) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, redis.ErrClosed) {
		return false
	}
	for _, prefix := range []string{
		"TRYAGAIN", "MOVED", "ASK", "READONLY", "LOADING", "CLUSTERDOWN", "MASTERDOWN", "ERR max number of clients",
		"ERR max requests", "BUSY ", "NOREPLICAS", "MISCONF",
	} {
		if redis.HasErrorPrefix(err, prefix) || strings.HasPrefix(err.Error(), prefix) {
			return true
		}
	}
	if _, ok := errors.AsType[net.Error](err); ok || errors.Is(err, redis.ErrPoolTimeout) {
		return true
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// Full reports whether Redis refused a write for want of memory.
func Full(err error) bool {
	return err != nil && (redis.HasErrorPrefix(err, "OOM") || strings.Contains(err.Error(), "OOM command not allowed"))
}

// Away reports whether err says that Redis could not be reached, or not in time.
func Away(err error) bool {
	return passing(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, redis.ErrClosed)
}
