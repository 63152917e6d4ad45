package server

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/keys"
)

// listen receives wake-ups: which route has rows from when on, which run is closed. They are hints. After every
// (re)subscribe each shard reads the truth.
func (s *Server) listen(ctx context.Context) {
	s.tryPublish(ctx)
	sub := s.rdb.Subscribe(ctx, s.rows.Space().Channel())
	// a connection that waits for messages does not see the context end
	unhook := context.AfterFunc(ctx, func() { _ = sub.Close() })
	defer func() {
		unhook()
		_ = sub.Close() // nothing to do about an error of a connection that is given up
	}()
	failing := false
	for ctx.Err() == nil {
		msg, err := sub.Receive(ctx)
		if err != nil {
			s.claimer.hints.Store(false)
			if ctx.Err() != nil || errors.Is(s.rdb.Ping(ctx).Err(), redis.ErrClosed) {
				return // the server or its client is closed
			}
			if !failing {
				s.log.Warn("wake-ups do not arrive; due rows are looked for every second", "err", err)
				failing = true
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			continue
		}
		switch m := msg.(type) {
		case *redis.Subscription:
			failing = false
			s.claimer.hints.Store(s.claimer.heard.Load())
			for _, sh := range s.claimer.shards {
				sh.doubt()
			}
		case *redis.Message:
			s.claimer.heard.Store(true)
			s.claimer.hints.Store(true)
			s.hear(m.Payload)
		}
	}
}

// tryPublish says at the start whether this server's wake-ups can reach others.
func (s *Server) tryPublish(ctx context.Context) {
	if err := s.rdb.Publish(ctx, s.rows.Space().Channel(), "h").Err(); err != nil && ctx.Err() == nil {
		s.log.Warn("Redis refuses to publish wake-ups: due rows are found by looking every second, which is slow. "+
			"Allow PUBLISH and SUBSCRIBE on the channel", "channel", s.rows.Space().Channel(), "err", err)
		return
	}
	s.claimer.heard.Store(true)
}

// hear acts on a wake-up: "r shard score route", or "c shard run".
func (s *Server) hear(msg string) {
	kind, rest, _ := strings.Cut(msg, " ")
	shard, rest, _ := strings.Cut(rest, " ")
	n, err := strconv.Atoi(shard)
	if err != nil || n < 0 || n >= len(s.claimer.shards) {
		return // a later version's, or nobody's
	}
	switch kind {
	case "r":
		score, name, _ := strings.Cut(rest, " ")
		ms, err := strconv.ParseFloat(score, 64)
		if r, ok := keys.ParseRoute(name); ok && err == nil {
			s.claimer.shards[n].hint(r, time.UnixMicro(int64(ms*1000)))
		}
	case "c":
		s.watchers.notify(umbel.RunID(rest), true)
	}
}
