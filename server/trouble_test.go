package server_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel/internal/memredis"
	"github.com/umbelhq/umbel/server"
)

// down is a Redis that may be away.
type down struct{ away atomic.Bool }

func (d *down) DialHook(next redis.DialHook) redis.DialHook { return next }

func (d *down) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if d.away.Load() {
			cmd.SetErr(errAway)
			return errAway
		}
		return next(ctx, cmd)
	}
}

func (d *down) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if d.away.Load() {
			for _, cmd := range cmds {
				cmd.SetErr(errAway)
			}
			return errAway
		}
		return next(ctx, cmds)
	}
}

var errAway = errors.New("no such luck")

// A Redis that is away for long does not fill the log.
func TestOutageIsLoggedInFewWords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := memredis.Open()
		defer mem.Close()
		client, d := mem.Client(), &down{}
		client.AddHook(d)
		var log strings.Builder
		s, err := server.Open(t.Context(), client, server.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		d.away.Store(true)
		time.Sleep(10*time.Minute + time.Second/2)
		d.away.Store(false)
		time.Sleep(2 * time.Second)
		s.Close()
		if got := strings.Count(log.String(), `level=WARN msg="lapsed leases cannot be swept"`); got < 9 || got > 11 {
			t.Errorf("%d lines in ten minutes, want one a minute", got)
		}
		for line := range strings.Lines(log.String()) {
			if n := strings.Count(line, errAway.Error()); n > 1 {
				t.Errorf("a line says %d times the same: %s", n, line)
			}
		}
		if !strings.Contains(log.String(), `msg="over: lapsed leases cannot be swept" after=10m`) {
			t.Errorf("nothing says that it is over:\n%s", log.String())
		}
	})
}
