package testredis_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel/internal/testredis"
)

func TestEach(t *testing.T) {
	t.Parallel()
	var kinds []string
	prefixes := map[string]bool{}
	testredis.Each(t, func(t *testing.T, r *testredis.Redis) {
		kinds = append(kinds, r.Kind)
		prefixes[r.Prefix] = true
		if strings.ContainsAny(r.Prefix, "{}") || r.Prefix == "" {
			t.Errorf("prefix %q", r.Prefix)
		}
		ctx := t.Context()
		key := r.Prefix + "{tag}:k"
		if err := r.Client.Set(ctx, key, "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
		if got, err := r.NewClient(t).Get(ctx, key).Result(); err != nil || got != "v" {
			t.Errorf("another client reads %q, %v; want v", got, err)
		}
	})
	if got := strings.Join(kinds, " "); got != "mini real cluster" {
		t.Errorf("ran on %q", got)
	}
	if len(prefixes) != 3 {
		t.Errorf("prefixes repeat: %v", prefixes)
	}
}

func TestURLs(t *testing.T) {
	t.Parallel()
	single, cluster, mini := testredis.Shared(t), testredis.Cluster(t), testredis.Mini(t)

	o, err := redis.ParseURL(single.URL)
	if err != nil || o.Addr != single.Addr {
		t.Errorf("%q: %v", single.URL, err)
	}
	co, err := redis.ParseClusterURL(cluster.URL)
	if err != nil || len(co.Addrs) != 3 {
		t.Errorf("%q: %v", cluster.URL, err)
	}
	if mini.URL != "" {
		t.Errorf("miniredis has the URL %q, which nothing could dial", mini.URL)
	}
}

func TestMiniInBubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := testredis.Mini(t) // its cleanup must end every goroutine of the bubble
		start := time.Now()
		time.Sleep(time.Hour)
		at, err := r.Client.Time(t.Context()).Result()
		if err != nil || at.Sub(start) != time.Hour {
			t.Errorf("an hour later Redis says %v, %v", at.Sub(start), err)
		}
		r.Engine(t).SetError("LOADING gone for a moment")
		if err := r.Client.Ping(t.Context()).Err(); err == nil {
			t.Error("the injected error does not arrive")
		}
	})
}

func TestMeasures(t *testing.T) {
	t.Parallel()
	for _, r := range []*testredis.Redis{testredis.Shared(t), testredis.Cluster(t)} {
		ctx := t.Context()
		cpu, mem := r.CPU(t), r.UsedMemory(t)
		key := r.Prefix + ":big"
		if err := r.Client.Set(ctx, key, strings.Repeat("x", 8<<20), 0).Err(); err != nil {
			t.Fatal(err)
		}
		if err := r.Client.Eval(ctx, `for i = 1, 3000000 do end return redis.status_reply('OK')`, []string{key}).Err(); err != nil {
			t.Fatal(err)
		}
		if d := r.CPU(t) - cpu; d < time.Millisecond {
			t.Errorf("%s: a busy loop cost %v of CPU", r.Kind, d)
		}
		// Other tests share this Redis, but none frees as much as this one adds.
		if d := r.UsedMemory(t) - mem; d < 7<<20 {
			t.Errorf("%s: 8 MiB grew the memory by %d", r.Kind, d)
		}
		if err := r.Client.Del(ctx, key).Err(); err != nil {
			t.Error(err)
		}
	}
}
