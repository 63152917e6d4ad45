package outbox_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/outbox"
)

func TestScopeAdmits(t *testing.T) {
	t.Parallel()
	type (
		row   = outbox.Row
		scope = outbox.Scope
	)
	tests := []struct {
		name  string
		scope scope
		row   row
		want  bool
	}{
		{"nothing said on either side", scope{}, row{}, true},
		{"default spelled out in the scope", scope{Namespace: "default", TaskQueue: "default"}, row{}, true},
		{"default spelled out in the row", scope{}, row{Namespace: "default", TaskQueue: "default"}, true},
		{"same namespace", scope{Namespace: "n"}, row{Namespace: "n"}, true},
		{"another namespace", scope{Namespace: "n"}, row{Namespace: "m"}, false},
		{"default is a namespace of its own", scope{}, row{Namespace: "n"}, false},
		{"a prefix of a namespace", scope{Namespace: "n"}, row{Namespace: "nn"}, false},
		{"case counts", scope{Namespace: "N"}, row{Namespace: "n"}, false},
		{"a star matches itself only", scope{TaskQueue: "*"}, row{TaskQueue: "q"}, false},
		{"a star is a name", scope{TaskQueue: "*"}, row{TaskQueue: "*"}, true},
		{"another queue", scope{TaskQueue: "q"}, row{TaskQueue: "p"}, false},
		{"a separator does not move", scope{Namespace: "a:b", TaskQueue: "c"}, row{Namespace: "a", TaskQueue: "b:c"}, false},
		{"unpinned row, scope with a node", scope{Node: "a"}, row{}, true},
		{"unpinned row, scope without a node", scope{}, row{Node: ""}, true},
		{"pinned row, its node", scope{Node: "a"}, row{Node: "a"}, true},
		{"pinned row, another node", scope{Node: "b"}, row{Node: "a"}, false},
		{"pinned row, no node", scope{}, row{Node: "a"}, false},
		{"its node, another queue", scope{TaskQueue: "q", Node: "a"}, row{Node: "a"}, false},
		{"its node, another namespace", scope{Namespace: "n", Node: "a"}, row{Node: "a"}, false},
		{"a node named default", scope{}, row{Node: "default"}, false},
	}
	for _, tt := range tests {
		if got := tt.scope.Admits(tt.row); got != tt.want {
			t.Errorf("%s: %+v admits row of %q/%q/%q = %v, want %v", tt.name, tt.scope,
				tt.row.Namespace, tt.row.TaskQueue, tt.row.Node, got, tt.want)
		}
	}
}

// What a row waits for besides its scope is not the scope's business.
func TestScopeAdmitsByRouteAlone(t *testing.T) {
	t.Parallel()
	r := outbox.Row{Status: outbox.Done, ActivityType: "a", WorkflowID: "w", RunID: "r", Attempt: 3}
	if !(outbox.Scope{}).Admits(r) {
		t.Error("a scope looked at more than namespace, task queue and node")
	}
}

func TestScopeValidate(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", umbel.MaxNameBytes+1)
	for _, s := range []outbox.Scope{
		{Namespace: long}, {TaskQueue: long}, {Node: long},
		{Namespace: "a\x00"}, {TaskQueue: "a\n"}, {Node: "\xff"},
	} {
		err := s.Validate()
		if !errors.Is(err, umbel.ErrInvalid) {
			t.Errorf("%+q: %v, want %v", s, err, umbel.ErrInvalid)
		}
	}
	for _, s := range []outbox.Scope{{}, {Namespace: "a:b", TaskQueue: "{}", Node: "*"}, {Node: long[1:]}} {
		if err := s.Validate(); err != nil {
			t.Errorf("%+q: %v", s, err)
		}
	}
}
