package lua

import (
	"fmt"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testredis"
)

// maxStep bounds how long a call may hold Redis.
const maxStep = 10 * time.Millisecond

// timed is a Redis of its own that logs calls longer than maxStep.
func timed(t *testing.T) *testredis.Redis {
	t.Helper()
	return testredis.Real(t, testredis.Directive("slowlog-log-slower-than", fmt.Sprint(maxStep.Microseconds())))
}

// slow runs f and returns which of its steps were too long, by Redis's slow log, which counts the time in Redis
// alone, and by the processor time that Redis used: on a busy machine the first alone counts what others take. What f
// does outside of steps does not count.
func (w *world) slow(r *testredis.Redis, f func(step func(f func()))) []string {
	w.t.Helper()
	var out []string
	f(func(f func()) {
		must(w.rdb.Do(w.ctx(), "SLOWLOG", "RESET").Result())(w.t)
		cpu := r.CPU(w.t)
		f()
		if cpu = r.CPU(w.t) - cpu; cpu <= maxStep {
			return
		}
		for _, e := range must(w.rdb.Do(w.ctx(), "SLOWLOG", "GET", 10).Slice())(w.t) {
			e := e.([]any)
			args := e[3].([]any)
			name := args[0]
			for _, s := range all {
				if len(args) > 1 && args[1] == s.sha {
					name = s.name
				}
			}
			out = append(out, fmt.Sprintf("%v %d µs (processor %v)", name, e[2], cpu))
		}
	})
	return out
}
