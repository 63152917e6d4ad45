package testredis_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel/internal/testredis"
)

func TestClusterSpreadsKeys(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r := testredis.Cluster(t)

	owners := map[string]int{}
	for i := range 60 {
		key := fmt.Sprintf("%s:{%d}", r.Prefix, i)
		if err := r.Client.Set(ctx, key, i, 0).Err(); err != nil {
			t.Fatal(err)
		}
		node, err := r.Client.(*redis.ClusterClient).MasterForKey(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		owners[node.Options().Addr]++
	}
	if len(owners) != 3 || len(r.Addrs()) != 3 {
		t.Errorf("60 keys went to %v; want three masters", owners)
	}
}

// Only a script that begins with #!lua is held to one slot. This is why the
// slot test of internal/lua prepends it.
func TestClusterModeSingleChecksSlots(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r := testredis.ClusterModeSingle(t)
	const body = "redis.call('SET', '{b}' .. ARGV[1], 'v') return 'done'"

	if got, err := r.Client.Eval(ctx, body, []string{"{a}"}, r.Prefix).Result(); err != nil || got != "done" {
		t.Errorf("a plain script: %v, %v", got, err)
	}
	err := r.Client.Eval(ctx, "#!lua\n"+body, []string{"{a}"}, r.Prefix).Err()
	if err == nil || !strings.Contains(err.Error(), "non local key") &&
		!strings.Contains(err.Error(), "do not hash to the same slot") {
		t.Errorf("a #!lua script across slots: %v; want a refusal", err)
	}
}
