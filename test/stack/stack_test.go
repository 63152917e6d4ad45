package stack

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/internal/testredis"
	"github.com/umbelhq/umbel/outbox/outboxtest"
	"github.com/umbelhq/umbel/server"
	"github.com/umbelhq/umbel/worker"
)

// stack is a Redis with servers, workers and clients, all of which end with the test.
type stack struct {
	t      *testing.T
	redis  *testredis.Redis
	config server.Config // of the servers that the stack opens
	log    *logbook

	ended   []func()
	servers []*server.Server
}

// onMini runs f in a bubble of virtual time, on miniredis.
func onMini(t *testing.T, f func(s *stack)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { run(t, testredis.Mini(t), f) })
}

// onReal runs f on the redis-server that the tests share.
func onReal(t *testing.T, f func(s *stack)) {
	t.Helper()
	run(t, testredis.Shared(t), f)
}

// onOwn runs f on a redis-server of its own, which may be killed and configured.
func onOwn(t *testing.T, f func(s *stack), opts ...testredis.Option) {
	t.Helper()
	run(t, testredis.Real(t, opts...), f)
}

// onEach runs f as a subtest on each kind of Redis.
func onEach(t *testing.T, f func(s *stack)) {
	t.Helper()
	t.Run(testredis.KindMini, func(t *testing.T) { onMini(t, f) })
	t.Run(testredis.KindReal, func(t *testing.T) { t.Parallel(); onReal(t, f) })
	t.Run(testredis.KindCluster, func(t *testing.T) { t.Parallel(); run(t, testredis.Cluster(t), f) })
}

func run(t *testing.T, r *testredis.Redis, f func(s *stack)) {
	t.Helper()
	s := &stack{t: t, redis: r, log: &logbook{}}
	s.config = server.Config{Prefix: r.Prefix, Logger: s.log.logger()}
	defer func() {
		s.end()
		if t.Failed() {
			t.Log("servers and workers said:\n" + s.log.text())
			return
		}
		if err := outboxtest.CheckRedis(t, r.Client, r.Prefix); err != nil {
			t.Error("stored state:", err)
		}
	}()
	f(s)
}

// virtual reports whether time is the bubble's: waits cost nothing and are exact.
func (s *stack) virtual() bool { return s.redis.Kind == testredis.KindMini }

// atEnd calls f when the test is over, the latest first.
func (s *stack) atEnd(f func()) { s.ended = append(s.ended, f) }

func (s *stack) end() {
	for _, f := range slices.Backward(s.ended) {
		f()
	}
	s.ended = nil
}

// open starts another server, with a Redis client of its own.
func (s *stack) open(changes ...func(*server.Config)) *server.Server {
	s.t.Helper()
	return s.openOn(s.redis.NewClient(s.t), changes...)
}

func (s *stack) openOn(rdb redis.UniversalClient, changes ...func(*server.Config)) *server.Server {
	s.t.Helper()
	cfg := s.config
	for _, c := range changes {
		c(&cfg)
	}
	e, err := server.Open(s.t.Context(), rdb, cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	s.atEnd(func() { _ = e.Close() })
	s.servers = append(s.servers, e)
	return e
}

// lease makes servers use a lease of d.
func lease(d time.Duration) func(*server.Config) { return func(c *server.Config) { c.Lease = d } }

// connect returns a client of an engine.
func (s *stack) connect(e umbel.Engine) *client.Client {
	s.t.Helper()
	c, err := client.New(e, client.Config{})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// crew is a worker that runs.
type crew struct {
	*worker.Worker
	done chan struct{}
	err  error // of Run, once done is closed
}

// work runs a worker on an engine until the test ends.
func (s *stack) work(e worker.Engine, cfg worker.Config, register func(*worker.Worker)) *crew {
	s.t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = s.log.logger()
	}
	w, err := worker.New(e, cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	register(w)
	c := &crew{Worker: w, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.err = w.Run(context.WithoutCancel(s.t.Context()))
	}()
	s.atEnd(c.end)
	return c
}

// end stops the worker and waits for it.
func (c *crew) end() {
	_ = c.Stop(context.Background())
	<-c.done
}

// eventually waits until ok, or fails the test after a minute.
func (s *stack) eventually(what string, ok func() bool) {
	s.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !ok() {
		if time.Now().After(deadline) {
			s.t.Fatalf("after a minute still not: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// tally counts what handlers saw, by any key.
type tally[K comparable] struct {
	mu sync.Mutex
	n  map[K]int
}

func (c *tally[K]) add(k K) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[K]int{}
	}
	c.n[k]++
	return c.n[k]
}

func (c *tally[K]) get(k K) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[k]
}

// sum is how much was counted, and most the highest count of one key.
func (c *tally[K]) sum() (sum, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.n {
		sum += n
		most = max(most, n)
	}
	return sum, most
}
