package memredis_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel/internal/memredis"
)

func TestClientsShareOneServer(t *testing.T) {
	t.Parallel()
	s := memredis.Open()
	defer s.Close()
	a, b := s.Client(), s.Client()

	if err := a.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Get(t.Context(), "k").Result(); err != nil || got != "v" {
		t.Fatalf("the other client reads %q, %v; want v", got, err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.Ping(t.Context()).Err(); err != nil {
		t.Fatalf("closing one client broke the other: %v", err)
	}
}

func TestCloseTwiceAndServersAreApart(t *testing.T) {
	t.Parallel()
	s, other := memredis.Open(), memredis.Open()
	defer other.Close()
	c := s.Client()
	if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if n, err := other.Client().DBSize(t.Context()).Result(); err != nil || n != 0 {
		t.Fatalf("another server holds %d keys, %v; want none", n, err)
	}
	s.Close()
	s.Close()
	if err := c.Ping(t.Context()).Err(); err == nil {
		t.Fatal("a client of a closed server still answers")
	}
}

// A pipeline larger than every buffer on the way must not lock up.
func TestLargePipeline(t *testing.T) {
	t.Parallel()
	s := memredis.Open()
	defer s.Close()
	c := s.Client()

	big := strings.Repeat("x", 64<<10)
	cmds, err := c.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for range 100 {
			p.Set(t.Context(), "k", big, 0)
			p.Get(t.Context(), "k")
		}
		return nil
	})
	if err != nil || len(cmds) != 200 {
		t.Fatalf("%d replies, %v", len(cmds), err)
	}
}

// A subscriber that does not read must not stop the rest: miniredis publishes
// under its lock.
func TestSlowSubscriber(t *testing.T) {
	t.Parallel()
	s := memredis.Open()
	defer s.Close()
	sub := s.Client().Subscribe(t.Context(), "ch")
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := s.Client()
	for range 1000 {
		if err := c.Publish(t.Context(), "ch", strings.Repeat("x", 1000)).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// The server's clock is the bubble's: TIME moves with it, keys expire by it,
// also unread ones and hash fields of scripts, and nothing outlives the bubble.
func TestClockFollowsBubble(t *testing.T) {
	t.Parallel()
	wall := time.Now()
	for range 2 { // a second bubble shows that the first left nothing behind
		synctest.Test(t, func(t *testing.T) {
			s := memredis.Open()
			defer s.Close()
			c := s.Client()

			now := func() time.Time {
				t.Helper()
				at, err := c.Time(t.Context()).Result()
				if err != nil {
					t.Fatal(err)
				}
				return at
			}
			inScript := redis.NewScript(`local t = redis.call('TIME') return t[1] * 1000 + math.floor(t[2] / 1000)`)

			start := now()
			if !start.Equal(time.Now()) {
				t.Errorf("TIME is %v, the bubble's clock %v", start, time.Now())
			}
			c.Set(t.Context(), "k", "v", time.Minute)
			c.PExpire(t.Context(), "k", 59_999*time.Millisecond)

			time.Sleep(59_998 * time.Millisecond)
			if n := c.Exists(t.Context(), "k").Val(); n != 1 {
				t.Error("the key expired early")
			}
			time.Sleep(time.Millisecond)
			if n := c.DBSize(t.Context()).Val(); n != 0 {
				t.Error("the key did not expire")
			}
			if got := now().Sub(start); got != 59_999*time.Millisecond {
				t.Errorf("TIME moved by %v", got)
			}
			ms, err := inScript.Run(t.Context(), c, nil).Int64()
			if err != nil || ms != time.Now().UnixMilli() {
				t.Errorf("TIME in a script is %d, %v; want %d", ms, err, time.Now().UnixMilli())
			}
		})
	}
	if d := time.Since(wall); d > 30*time.Second {
		t.Errorf("two minutes of the bubble took %v", d)
	}
}

// Hints travel by PUBLISH: a subscription must work in a bubble and end there.
func TestSubscribeInBubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memredis.Open()
		defer s.Close()
		c := s.Client()

		sub := c.Subscribe(t.Context(), "ch")
		defer sub.Close()
		if _, err := sub.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := make(chan string, 1)
		go func() {
			for m := range sub.Channel() {
				got <- m.Payload
			}
		}()
		time.Sleep(10 * time.Minute) // past every health check of the client
		if err := c.Publish(t.Context(), "ch", "hello").Err(); err != nil {
			t.Fatal(err)
		}
		if m := <-got; m != "hello" {
			t.Errorf("received %q", m)
		}
	})
}
