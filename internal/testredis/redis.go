// Package testredis gives tests a Redis: the in-memory one, a private process,
// or a cluster of three. A test that needs a redis-server and finds none fails
// and says how to get one; it never skips.
//
//	func TestStore(t *testing.T) {
//		testredis.Each(t, func(t *testing.T, r *testredis.Redis) {
//			t.Parallel()
//			store, err := outbox.NewRedis(t.Context(), r.Client, outbox.Options{Prefix: r.Prefix})
//			…
//		})
//	}
//
// Inside a testing/synctest bubble only [Mini] works: real sockets never count
// as blocked there, so the bubble's clock would stand still.
package testredis

import (
	"crypto/rand"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/umbelhq/umbel/internal/memredis"
)

// The kinds of Redis, as in [Redis.Kind] and in the names of Each's subtests.
const (
	KindMini    = "mini"    // miniredis, in this process
	KindReal    = "real"    // one redis-server
	KindCluster = "cluster" // redis-server in cluster mode, one node or three
)

// Redis is a handle on one Redis for one test. It ends with the test.
type Redis struct {
	// Client is connected and honours the deadline of a call's context.
	Client redis.UniversalClient
	// Addr is host:port, of the first node in a cluster. Nothing listens on
	// the address of a miniredis.
	Addr string
	// URL is what go-redis parses: ParseURL, for a cluster ParseClusterURL. It
	// is empty for miniredis, which only Client reaches.
	URL string
	// Kind is one of KindMini, KindReal, KindCluster.
	Kind string
	// Prefix is random. A test keeps to keys that begin with it, since others
	// use a shared Redis at the same time. It has no braces: hash tags may
	// follow it.
	Prefix string

	mini   *memredis.Server
	nodes  []*process
	shared bool
}

// Each runs f as a subtest on a miniredis, on the shared redis-server and on
// the shared cluster. f may call t.Parallel.
func Each(t *testing.T, f func(t *testing.T, r *Redis)) {
	t.Helper()
	t.Run(KindMini, func(t *testing.T) { f(t, Mini(t)) })
	t.Run(KindReal, func(t *testing.T) { f(t, Shared(t)) })
	t.Run(KindCluster, func(t *testing.T) { f(t, Cluster(t)) })
}

// NewClient returns another client of the same Redis, with its own
// connections. It is closed when the test ends.
func (r *Redis) NewClient(t testing.TB) redis.UniversalClient {
	t.Helper()
	if r.mini != nil {
		return r.mini.Client() // closed with the server
	}
	var client redis.UniversalClient
	if r.Kind == KindCluster {
		client = redis.NewClusterClient(clusterOptions(r.Addrs()))
	} else {
		client = newClient(r.Addr)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Addrs returns the host:port of every node.
func (r *Redis) Addrs() []string {
	if r.mini != nil {
		return []string{r.Addr}
	}
	addrs := make([]string, len(r.nodes))
	for i, n := range r.nodes {
		addrs[i] = n.addr()
	}
	return addrs
}

// CPU returns the processor time, user and system, that the Redis has used
// since it started, all nodes together. Miniredis has none of its own: there it
// fails the test, lest a measurement measures nothing.
func (r *Redis) CPU(t testing.TB) time.Duration {
	t.Helper()
	var seconds float64
	for _, field := range []string{"used_cpu_user", "used_cpu_sys"} {
		for _, text := range r.info(t, "cpu", field) {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatalf("testredis: %s: %v", field, err)
			}
			seconds += v
		}
	}
	return time.Duration(seconds * float64(time.Second))
}

// UsedMemory returns the bytes that the Redis has allocated, all nodes
// together. It fails the test on miniredis.
func (r *Redis) UsedMemory(t testing.TB) int64 {
	t.Helper()
	var bytes int64
	for _, text := range r.info(t, "memory", "used_memory") {
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatalf("testredis: used_memory: %v", err)
		}
		bytes += v
	}
	return bytes
}

// info returns one field of INFO of every node.
func (r *Redis) info(t testing.TB, section, field string) []string {
	t.Helper()
	if r.mini != nil {
		t.Fatalf("testredis: miniredis has no INFO %s; measure on Real or Cluster", section)
	}
	out := make([]string, len(r.nodes))
	for i, n := range r.nodes {
		text, err := n.admin.Info(t.Context(), section).Result()
		if err != nil {
			t.Fatalf("testredis: INFO %s: %v", section, err)
		}
		if out[i] = infoField(text, field); out[i] == "" {
			t.Fatalf("testredis: INFO %s has no %s", section, field)
		}
	}
	return out
}

// infoField returns the value of name in the text of INFO or CLUSTER INFO, or
// nothing.
func infoField(text, name string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func newPrefix() string { return "t" + strings.ToLower(rand.Text()[:12]) }

func newClient(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:                     addr,
		ContextTimeoutEnabled:    true,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

func clusterOptions(addrs []string) *redis.ClusterOptions {
	return &redis.ClusterOptions{
		Addrs:                    addrs,
		ContextTimeoutEnabled:    true,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

func nodesURL(addrs []string) string {
	u := url.URL{Scheme: "redis", Host: addrs[0], Path: "/"}
	if len(addrs) > 1 {
		u.RawQuery = url.Values{"addr": addrs[1:]}.Encode()
	}
	return u.String()
}
