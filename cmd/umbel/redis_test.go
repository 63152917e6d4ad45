package main

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestOpenRedis(t *testing.T) {
	t.Parallel()
	one, err := openRedis("rediss://u:p@h:1/3?read_timeout=7s&pool_size=5")
	if err != nil {
		t.Fatal(err)
	}
	if o := one.(*redis.Client).Options(); o.Addr != "h:1" || o.DB != 3 || o.TLSConfig == nil || o.PoolSize != 5 || o.Password != "p" || !o.ContextTimeoutEnabled {
		t.Errorf("a single Redis: %+v", o)
	}
	socket, err := openRedis("unix:///path/to/redis.sock?db=1")
	if err != nil {
		t.Fatal(err)
	}
	if o := socket.(*redis.Client).Options(); o.Network != "unix" || o.Addr != "/path/to/redis.sock" || o.PoolSize != poolSize {
		t.Errorf("a socket: %+v", o)
	}
	cluster, err := openRedis("redis+cluster://u:p@a:1,b:2,c:3?dial_timeout=3s")
	if err != nil {
		t.Fatal(err)
	}
	if o := cluster.(*redis.ClusterClient).Options(); strings.Join(o.Addrs, " ") != "a:1 b:2 c:3" || o.Username != "u" || o.DialTimeout.Seconds() != 3 {
		t.Errorf("a Cluster: %+v", o)
	}
	sentinel, err := openRedis("redis+sentinel://a:1,b:2/4?master_name=m")
	if err != nil {
		t.Fatal(err)
	}
	if o := sentinel.(*redis.Client).Options(); o.DB != 4 || o.Addr != "FailoverClient" {
		t.Errorf("Sentinel: %+v", o)
	}
	for _, c := range []redis.UniversalClient{one, socket, cluster, sentinel} {
		_ = c.Close()
	}
}

func TestOpenRedisRefuses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"localhost:6379":                "must be one of redis://",
		"http://h:1":                    "invalid URL scheme: http",
		"redis://h:1?nonsense=1":        "unexpected option: nonsense",
		"redis://h:1/x":                 "invalid database number",
		"redis+pool://h:1":              "must be one of redis://",
		"redis+sentinel://h:1":          "names no master",
		"redis://user:secret@h:1?bad=1": `--redis "redis://user:xxxxx@h:1?bad=1"`,
		"redis://user:secret@h h:1":     `"…@h h:1"`,
	} {
		_, err := openRedis(address)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") || exitCode(err) != exitUsage {
			t.Errorf("%s: %v, want %s", address, err, want)
		}
	}
}

func TestManyHosts(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a:1":                 "a:1",
		"a:1/2?x=y":           "a:1/2?x=y",
		"a:1,b:2":             "a:1?addr=b%3A2",
		"u:p,@a:1,b:2,c:3/":   "u:p,@a:1/?addr=b%3A2&addr=c%3A3",
		"a:1,b:2/3?x=y":       "a:1/3?x=y&addr=b%3A2",
		"[::1]:1,[::2]:2?x=y": "[::1]:1?x=y&addr=%5B%3A%3A2%5D%3A2",
	} {
		if got := manyHosts(in); got != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
}
