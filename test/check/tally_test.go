package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// tally counts what occurred, over all schedules of a run.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *tally) add(what ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[strings.Join(what, " ")]++
}

// missing returns those that never occurred.
func (c *tally) missing(want []string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(want), func(w string) bool { return c.n[w] > 0 })
}

func (c *tally) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(c.n)) {
		fmt.Fprintf(&b, "%8d  %s\n", c.n[k], k)
	}
	return b.String()
}
