package outbox

import (
	"cmp"

	"github.com/umbelhq/umbel"
)

// Scope is what a claim is restricted to.
type Scope struct {
	Namespace string // empty: default
	TaskQueue string // empty: default
	Node      string // empty: unpinned rows only
}

// Admits reports whether a claim in scope s may take r: namespace and task queue match exactly; a row that is
// pinned to a node needs a scope with that node, an unpinned row any.
func (s Scope) Admits(r Row) bool {
	r = r.WithDefaults()
	return cmp.Or(s.Namespace, umbel.DefaultNamespace) == r.Namespace &&
		cmp.Or(s.TaskQueue, umbel.DefaultTaskQueue) == r.TaskQueue &&
		(r.Node == "" || r.Node == s.Node)
}

// Validate reports the first name of s that breaks a rule.
func (s Scope) Validate() error {
	return cmp.Or(
		umbel.ValidateLabel("namespace", s.Namespace),
		umbel.ValidateLabel("task queue", s.TaskQueue),
		umbel.ValidateLabel("node", s.Node),
	)
}
