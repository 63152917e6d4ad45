package testredis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"
)

const slots = 16384

// Cluster returns the cluster of three masters that all tests of this binary
// share. Keep to keys under Prefix.
func Cluster(t testing.TB) *Redis {
	t.Helper()
	return sharedNodes(t, sharedCluster)
}

// ClusterModeSingle returns a shared cluster of one node that owns every slot.
// Unlike a plain Redis it rejects a script that reaches into a second slot, if
// the script begins with #!lua.
func ClusterModeSingle(t testing.TB) *Redis {
	t.Helper()
	return sharedNodes(t, sharedSingle)
}

func sharedNodes(t testing.TB, get func() ([]*process, error)) *Redis {
	t.Helper()
	nodes, err := get()
	if err != nil {
		t.Fatal(err)
	}
	r := handle(t, KindCluster, nodes...)
	r.shared = true
	return r
}

var (
	sharedCluster = sync.OnceValues(func() ([]*process, error) { return launchCluster(3) })
	sharedSingle  = sync.OnceValues(func() ([]*process, error) { return launchCluster(1) })
)

// launchCluster starts n masters, gives each its share of the slots, and waits
// until all agree. That takes two seconds: a master refuses to serve earlier.
func launchCluster(n int) (_ []*process, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	nodes := make([]*process, 0, n)
	defer func() {
		if err != nil {
			for _, p := range nodes {
				p.close()
			}
		}
	}()
	for i := range n {
		p, err := launch(ctx, directives([]Option{ClusterEnabled()}))
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, p)
		first, next := i*slots/n, (i+1)*slots/n
		err = errors.Join(
			// Different epochs, as the masters would otherwise first have to settle.
			p.admin.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(),
			// go-redis sends ADDSLOTS with each slot, which Redis 6.2 has too.
			p.admin.ClusterAddSlotsRange(ctx, first, next-1).Err(),
		)
		if err != nil {
			return nil, fmt.Errorf("testredis: give node %d its slots: %w", i, err)
		}
		for _, other := range nodes[:i] {
			if err := p.admin.ClusterMeet(ctx, "127.0.0.1", strconv.Itoa(other.port)).Err(); err != nil {
				return nil, fmt.Errorf("testredis: introduce node %d: %w", i, err)
			}
		}
	}
	for _, p := range nodes {
		if err := p.clusterReady(ctx, n); err != nil {
			return nil, err
		}
	}
	return nodes, nil
}

// clusterReady waits until this node serves, knows n nodes and sees every slot
// in good hands.
func (p *process) clusterReady(ctx context.Context, n int) error {
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		info, err := p.admin.ClusterInfo(ctx).Result()
		if err == nil && infoField(info, "cluster_state") == "ok" &&
			infoField(info, "cluster_slots_ok") == strconv.Itoa(slots) &&
			infoField(info, "cluster_known_nodes") == strconv.Itoa(n) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("testredis: the cluster of %d is not ready: %w: %s\n%s", n, ctx.Err(), info, p.logTail())
		case <-poll.C:
		}
	}
}
