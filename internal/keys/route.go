package keys

import (
	"strconv"
	"strings"
)

// Route is what a row waits on.
type Route struct {
	Namespace, TaskQueue, Node, Type string // Node is empty for rows that may run anywhere
	Priority                         int
}

// DefaultPriority is the middle of 1 (first) to 5 (last).
const DefaultPriority = 3

// String encodes the route: two different routes never share an encoding.
func (r Route) String() string {
	return Escape(r.Namespace) + ":" + Escape(r.TaskQueue) + ":" + Escape(r.Node) + ":" + Escape(r.Type) +
		":" + strconv.Itoa(r.Priority)
}

// ParseRoute undoes [Route.String]. It reports false for what no version wrote.
func ParseRoute(s string) (Route, bool) {
	p := strings.Split(s, ":")
	if len(p) != 5 {
		return Route{}, false
	}
	prio, err := strconv.Atoi(p[4])
	if err != nil {
		return Route{}, false
	}
	r := Route{
		Namespace: Unescape(p[0]), TaskQueue: Unescape(p[1]), Node: Unescape(p[2]), Type: Unescape(p[3]),
		Priority: prio,
	}
	return r, r.String() == s
}
