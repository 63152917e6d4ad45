package lua

import (
	"fmt"
	"time"
)

// slow runs f and returns what its steps left in Redis's slow log, which counts the time in Redis alone. What f does
// outside of steps does not count.
func (w *world) slow(f func(step func(f func()))) []string {
	w.t.Helper()
	var out []string
	f(func(f func()) {
		must(w.rdb.Do(w.ctx(), "SLOWLOG", "RESET").Result())(w.t)
		f()
		for _, e := range must(w.rdb.Do(w.ctx(), "SLOWLOG", "GET", 10).Slice())(w.t) {
			e := e.([]any)
			args := e[3].([]any)
			name := args[0]
			for _, s := range all {
				if len(args) > 1 && (args[1] == s.sha || args[1] == s.source) {
					name = s.name
				}
			}
			out = append(out, fmt.Sprintf("%v %v", name, time.Duration(e[2].(int64))*time.Microsecond))
		}
	})
	return out
}
