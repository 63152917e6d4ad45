package stack

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/testredis"
)

// Case 66: Redis above its maxmemory: starts are refused by name; claims, renewals, reports, releases and cancels go
// through, also of runs with retries. All of it over the network.
func TestCase66MaxMemory(t *testing.T) {
	t.Parallel()
	onOwn(t, func(s *stack) {
		e := s.remote(s.open(), false)
		s.start(e, "w", rows(500), retry(exactly(time.Millisecond, 5))...)
		s.start(e, "x", rows(500))
		held := s.claim(e, 100)
		s.redis.Config(s.t, "maxmemory", "1mb") // less than is in use
		time.Sleep(1100 * time.Millisecond)     // the server asks once a second
		begun, staged, committed := startAgain(s, e)
		if begun != nil || !errors.Is(staged, umbel.ErrOverloaded) || !errors.Is(committed, umbel.ErrOverloaded) {
			s.t.Errorf("begin: %v, stage: %v, start: %v", begun, staged, committed)
		}
		s.drain(e, held)
		s.redis.Config(s.t, "maxmemory", "0")
		time.Sleep(1100 * time.Millisecond)
		if _, _, err := startAgain(s, e); err != nil {
			s.t.Errorf("start with room: %v", err)
		}
		s.cancel(e, "new")
	}, testredis.MaxMemory(0))
}

// Case 66: a server that has not noticed yet gets Redis's own refusal, and says the same.
func TestCase66RedisRefuses(t *testing.T) {
	t.Parallel()
	onOwn(t, func(s *stack) {
		e := s.open()
		s.start(e, "w", rows(500), retry(exactly(time.Millisecond, 5))...)
		s.start(e, "x", rows(500))
		held := s.claim(e, 100)
		s.redis.Config(s.t, "maxmemory", "1mb")
		before := s.dump()
		if _, _, err := startAgain(s, e); !errors.Is(err, umbel.ErrOverloaded) {
			s.t.Errorf("start: %v", err)
		}
		if s.dump() != before {
			s.t.Error("a refused start left something")
		}
		s.open() // another server may join
		s.drain(e, held)
	}, testredis.MaxMemory(0))
}

func startAgain(s *stack, e umbel.Engine) (begun, staged, committed error) {
	ctx := s.t.Context()
	_, begun = e.Begin(ctx, umbel.BeginRequest{Namespace: ns, WorkflowID: "new"})
	id := umbel.NewRunID()
	_, staged = e.Stage(ctx, umbel.StageRequest{Namespace: ns, WorkflowID: "new", StagingID: id, Rows: rows(10)})
	_ = e.Discard(ctx, umbel.DiscardRequest{Namespace: ns, WorkflowID: "new", StagingID: id})
	_, committed = e.Commit(ctx, umbel.CommitRequest{Namespace: ns, WorkflowID: "new", Rows: rows(10), Scheduled: 10})
	return begun, staged, committed
}

// drain takes runs w and x to their end though Redis is full.
func (s *stack) drain(e umbel.Engine, held []umbel.ClaimedRow) {
	s.t.Helper()
	s.verdict(e, released(held[0]), umbel.Released)
	s.verdict(e, failed(held[1]), umbel.Retrying)
	r, err := e.Renew(s.t.Context(), umbel.RenewRequest{Namespace: ns, Worker: "hand", Tokens: []umbel.Token{held[2].Token}})
	if err != nil || r.States[0] != umbel.Held {
		s.t.Errorf("renew: %v %v", err, r.States)
	}
	s.finish(e, held[2:])
	s.cancel(e, "x", 400)
	s.cancel(e, "x")
	for s.describe(e, "w").Status == umbel.StatusRunning {
		held := s.claim(e, 1)
		s.finish(e, held)
	}
	s.history(e, "w")
	s.history(e, "x")
}

// Case 65: a Redis user without the right to publish: everything works, by the timer, and the server says why it is
// slow.
func TestCase65NoPublish(t *testing.T) {
	t.Parallel()
	onOwn(t, func(s *stack) {
		ctx := s.t.Context()
		if err := s.redis.Client.Do(ctx, "ACL", "SETUSER", "mute", "on", ">secret", "~*", "&*", "+@all", "-publish").Err(); err != nil {
			s.t.Fatal(err)
		}
		opts, err := redis.ParseURL(s.redis.URL)
		if err != nil {
			s.t.Fatal(err)
		}
		opts.Username, opts.Password, opts.ContextTimeoutEnabled = "mute", "secret", true
		clients := []*redis.Client{redis.NewClient(opts), redis.NewClient(opts)}
		for _, c := range clients {
			s.atEnd(func() { _ = c.Close() })
		}
		a, b := s.openOn(clients[0]), s.openOn(clients[1])
		s.claim0(b)
		for i := range 3 {
			r := pollRequest(5)
			r.Wait = 30 * time.Second
			got := make(chan []umbel.ClaimedRow, 1)
			go func() { got <- s.pollFor(b, r) }()
			time.Sleep(100 * time.Millisecond)
			began := time.Now()
			s.start(a, umbel.WorkflowID('a'+rune(i)), rows(5), retry(exactly(time.Millisecond, 3))...)
			held := <-got
			if took := time.Since(began); took > 5*time.Second || len(held) != 5 {
				s.t.Errorf("%d rows after %v", len(held), took)
			}
			s.verdict(b, failed(held[0]), umbel.Retrying)
			s.verdict(b, released(held[1]), umbel.Released)
			s.finish(b, held[2:])
			s.finish(a, s.claim(a, 2))
			if d := s.describe(a, umbel.WorkflowID('a'+rune(i))); d.Status != umbel.StatusCompleted {
				s.t.Errorf("%+v", d)
			}
		}
		if s.log.count("WARN", "refuses to publish", "PUBLISH") == 0 {
			s.t.Errorf("nobody says why it is slow:\n%s", s.log.text())
		}
		if strings.Contains(s.log.text(), "secret") {
			s.t.Error("the log has the password")
		}
	})
}
