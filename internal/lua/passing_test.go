package lua

import (
	"testing"

	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel/internal/testredis"
)

// redisError is an error as a server answers it.
type redisError string

func (e redisError) Error() string { return string(e) }
func (redisError) RedisError()     {}

// What an operator mends, or what mends itself, is Redis being away, not a mistake of a script.
func TestPassing(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.": true,
		"NOREPLICAS Not enough good replicas to write.":                                          true,
		"MISCONF Redis is configured to save RDB snapshots, but it is currently unable to.":      true,
		"LOADING Redis is loading the dataset in memory":                                         true,
		"READONLY You can't write against a read only replica.":                                  true,
		"BUSYGROUP Consumer Group name already exists":                                           false,
		"BUSYKEY Target key name already exists.":                                                false,
		"WRONGTYPE Operation against a key holding the wrong kind of value":                      false,
		"OOM command not allowed when used memory > 'maxmemory'.":                                false,
	} {
		if got := Away(redisError(text)); got != want {
			t.Errorf("%s: away is %v, want %v", text, got, want)
		}
	}
}

// A master without the replicas that it needs refuses writes until it has them again.
func TestNoReplicas(t *testing.T) {
	t.Parallel()
	r := testredis.Real(t, testredis.Directive("min-replicas-to-write", "1"))
	rdb := redis.NewClient(&redis.Options{
		Addr: r.Addr, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() { _ = rdb.Close() })
	w := newWorldOn(t, r, New(rdb))
	_, err := w.s.runFor(t.Context(), w.fan(4, "a").stageCall(0, rows{n: 1}).Call(), 0)
	if !Away(err) {
		t.Errorf("%v is not away", err)
	}
	must(rdb.ConfigSet(t.Context(), "min-replicas-to-write", "0").Result())(t)
	w.fan(4, "a").stage(rows{n: 1})
}
