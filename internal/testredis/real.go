package testredis

import (
	"context"
	"strconv"
	"sync"
	"testing"
)

// Option sets directives of redis.conf.
type Option func(directives map[string]string)

// Directive sets one line of redis.conf, the value as it stands there.
func Directive(name, value string) Option {
	return func(d map[string]string) { d[name] = value }
}

// AppendOnly turns the append-only file on; fsync is "always", "everysec" or
// "no".
func AppendOnly(fsync string) Option {
	return func(d map[string]string) {
		d["appendonly"] = "yes"
		d["appendfsync"] = fsync
	}
}

// MaxMemory bounds the data set. Above it, Redis refuses writes.
func MaxMemory(bytes int64) Option {
	return func(d map[string]string) {
		d["maxmemory"] = strconv.FormatInt(bytes, 10)
		d["maxmemory-policy"] = "noeviction"
	}
}

// ClusterEnabled starts the server in cluster mode, owning no slot.
// [ClusterModeSingle] and [Cluster] do the rest.
func ClusterEnabled() Option { return Directive("cluster-enabled", "yes") }

func directives(opts []Option) map[string]string {
	d := map[string]string{}
	for _, o := range opts {
		o(d)
	}
	return d
}

// Real starts a redis-server for this test alone: a process with its own port
// and directory, without persistence unless options say otherwise.
func Real(t testing.TB, opts ...Option) *Redis {
	t.Helper()
	p, err := launch(t.Context(), directives(opts))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("redis-server on %s said last:\n%s", p.addr(), p.logTail())
		}
	})
	return handle(t, KindReal, p)
}

// Shared returns the redis-server that all tests of this binary share. Keep to
// keys under Prefix; it can neither be killed nor configured.
func Shared(t testing.TB) *Redis {
	t.Helper()
	p, err := sharedReal()
	if err != nil {
		t.Fatal(err)
	}
	r := handle(t, KindReal, p)
	r.shared = true
	return r
}

// The janitor ends it: no test knows that it is the last.
var sharedReal = sync.OnceValues(func() (*process, error) {
	return launch(context.Background(), nil)
})

func handle(t testing.TB, kind string, nodes ...*process) *Redis {
	t.Helper()
	r := &Redis{Kind: kind, Prefix: newPrefix(), Addr: nodes[0].addr(), nodes: nodes}
	r.URL = nodesURL(r.Addrs())
	r.Client = r.NewClient(t)
	return r
}

// Kill ends the processes of a Redis from [Real] as kill -9 does. What its
// append-only file kept is there again after [Redis.Restart].
func (r *Redis) Kill(t testing.TB) {
	t.Helper()
	r.mustOwn(t)
	for _, n := range r.nodes {
		n.kill()
	}
}

// Restart kills the Redis unless it is dead and starts it on the same port and
// directory. It returns once the data is loaded. Clients reconnect by
// themselves; what [Redis.Config] set is forgotten.
func (r *Redis) Restart(t testing.TB) {
	t.Helper()
	r.Kill(t)
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range r.nodes {
		if err := n.start(t.Context(), bin); err != nil {
			t.Fatal(err)
		}
	}
}

// Config sets a directive of a running Redis from [Real].
func (r *Redis) Config(t testing.TB, name, value string) {
	t.Helper()
	r.mustOwn(t)
	for _, n := range r.nodes {
		if err := n.admin.ConfigSet(t.Context(), name, value).Err(); err != nil {
			t.Fatalf("testredis: CONFIG SET %s %s: %v", name, value, err)
		}
	}
}

func (r *Redis) mustOwn(t testing.TB) {
	t.Helper()
	if r.mini != nil || r.shared {
		t.Fatal("testredis: only a Redis from Real belongs to one test, which may kill or configure it")
	}
}
