package outboxtest

import (
	"slices"
	"strconv"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/outbox"
)

func scopeCases() []testCase {
	return []testCase{
		{"Scope_Promise4", scopes},
		{"ScopeNodes_Promise4", scopeNodes},
		{"ScopeLeavesTheRest_Promise4", scopeLeavesTheRest},
		{"ScopeIgnoresTypes", scopeIgnoresTypes},
		{"UnscopedTakesAll", unscopedTakesAll},
	}
}

// everywhere appends a row for each combination of two namespaces, two queues and no node, node a and node b.
func (s *suite) everywhere() []outbox.Row {
	var rows []outbox.Row
	for _, ns := range []string{"", "n"} {
		var of []outbox.Row
		for _, queue := range []string{"", "q"} {
			for _, node := range []string{"", "a", "b"} {
				r := row("w", int64(len(of)))
				r.Namespace, r.TaskQueue, r.Node = ns, queue, node
				of = append(of, r)
			}
		}
		rows = append(rows, of...)
	}
	s.append(rows...)
	return rows
}

// Namespace and task queue match exactly; a node admits unpinned rows and its own; none admits unpinned only.
// Each scope is applied to the same rows: they are put back in between.
func scopes(s *suite) {
	rows := s.everywhere()
	for _, ns := range []string{"", "default", "n", "m", "N"} {
		for _, queue := range []string{"", "default", "q", "p"} {
			for _, node := range []string{"", "a", "b", "c", "default"} {
				scope := outbox.Scope{Namespace: ns, TaskQueue: queue, Node: node}
				var want []outbox.Row
				for _, r := range rows {
					if scope.Admits(r) {
						want = append(want, r)
					}
				}
				got := s.claimScoped(scope, 100)
				s.wantSet("claim", got, want)
				for i := range got {
					if !scope.Admits(got[i]) {
						s.Errorf("scope %+v was handed %+v", scope, got[i])
					}
				}
				s.ok(s.Store.Rearm(s.Context(), got))
			}
		}
	}
	s.wantSet("all are back", s.drain(5), rows)
}

func scopeNodes(s *suite) {
	rows := fanOut("w", 30)
	for i := range rows {
		rows[i].Node = []string{"", "a", "b"}[i%3]
	}
	s.append(rows...)
	pick := func(nodes ...string) []outbox.Row {
		var of []outbox.Row
		for _, r := range rows {
			if slices.Contains(nodes, r.Node) {
				of = append(of, r)
			}
		}
		return of
	}
	at := func(node string) outbox.Scope { return outbox.Scope{Node: node} }
	s.wantSet("a worker of node a, limited", s.claimScoped(at("a"), 4), pick("", "a")[:4])
	s.wantSet("a worker without a node", s.claimScoped(at(""), 100), pick("")[2:])
	s.wantSet("a worker of node a", s.claimScoped(at("a"), 100), pick("a")[2:])
	s.wantSet("nothing left for a", s.claimScoped(at("a"), 100), nil)
	s.wantSet("nothing for c", s.claimScoped(at("c"), 100), nil)
	s.wantSet("a worker of node b", s.claimScoped(at("b"), 100), pick("b"))
}

// Rows that a scope does not admit stay as they are, even when they come first.
func scopeLeavesTheRest(s *suite) {
	rows := fanOut("w", 120)
	for i := range rows[:119] {
		rows[i].Node = "elsewhere"
	}
	s.append(rows...)
	before := s.scan("", "w")
	s.wantKeys("claim past 119 rows of another node", s.claimScoped(outbox.Scope{}, 1), rows[119:])
	for i, r := range s.scan("", "w")[:119] {
		s.wantRow("a row of another node", r, before[i])
	}
	s.wantKeys("claim in another namespace", s.claimScoped(outbox.Scope{Namespace: "n", Node: "elsewhere"}, 1), nil)
	s.wantKeys("claim of another queue", s.claimScoped(outbox.Scope{TaskQueue: "q", Node: "elsewhere"}, 1), nil)
	s.wantKeys("claim by their node", s.claimScoped(outbox.Scope{Node: "elsewhere"}, 200), rows[:119])
}

func scopeIgnoresTypes(s *suite) {
	rows := fanOut("w", 6)
	for i := range rows {
		rows[i].ActivityType = "type" + string(rune('a'+i%3))
	}
	s.append(rows...)
	s.wantKeys("claim", s.claimScoped(outbox.Scope{}, 10), rows)
}

func unscopedTakesAll(s *suite) {
	rows := s.everywhere()
	s.wantSet("claims", s.drain(5), rows)
	for _, r := range rows {
		if got := s.get(r.Key()); got.Status != outbox.Claimed {
			s.Errorf("%s is %s, want claimed", nameOf(r), got.Status)
		}
	}
}

func nameCases() []testCase {
	return []testCase{
		{"Names_Promise17", anyName},
		{"NamesWithSeparators_Promise17", separators},
		{"WorkflowID_Case50", case50},
		{"NamespacesNeverMeet_Promise4", namespacesNeverMeet},
	}
}

func hostileNames() []string {
	return []string{
		"a", "aa", "a:", ":a", "a:b", "a:b:c", "{x}", "}{", "{}", "{", "}", "{}:*", "*", "?", "[a]", "%", "%3A", "a%3Ab",
		"a b", " ", "/", "\\", "\"", "'", "a|b", "a,b", "a\u00e9", "ae\u0301", "🌿", "\u65e5\u672c", "0", "00", "00123", "-1", "1e3",
		"default", "Default", string(make255()),
	}
}

func make255() []byte {
	b := make([]byte, umbel.MaxNameBytes)
	for i := range b {
		b[i] = "a:{}*%"[i%6]
	}
	return b
}

// Every name in every place, all in one store: each scope finds its own row and no other.
func anyName(s *suite) {
	names := hostileNames()
	var rows []outbox.Row
	for i, name := range names {
		next := names[(i+1)%len(names)]
		for _, r := range []outbox.Row{
			{Namespace: name, WorkflowID: "w", TaskQueue: "q", ActivityType: "t"},
			{Namespace: "n", WorkflowID: umbel.WorkflowID(name), TaskQueue: name, ActivityType: "t"},
			{Namespace: "nodes", WorkflowID: umbel.WorkflowID(name), TaskQueue: "q", Node: name, ActivityType: "t"},
			{Namespace: "types", WorkflowID: umbel.WorkflowID(name), TaskQueue: name, ActivityType: name},
			{Namespace: "all " + name[:min(len(name), 200)], WorkflowID: umbel.WorkflowID(name), TaskQueue: next, Node: name, ActivityType: next},
		} {
			r.Input.Data = []byte(r.Namespace + "\x00" + string(r.WorkflowID))
			rows = append(rows, r)
		}
	}
	s.append(rows...)
	for _, r := range rows {
		want := r.WithDefaults()
		got := s.get(r.Key())
		want.VisibleAfter = got.VisibleAfter
		s.wantRow("get", got, want)
	}
	for _, r := range rows {
		if r.Namespace == "nodes" { // one queue for all nodes
			s.wantSet("claim by node "+r.Node, s.claimScoped(outbox.Scope{Namespace: "nodes", TaskQueue: "q", Node: r.Node}, 10), []outbox.Row{r})
			continue
		}
		got := s.claimScoped(outbox.Scope{Namespace: r.Namespace, TaskQueue: r.TaskQueue, Node: r.Node}, 10)
		s.wantSet("claim", got, []outbox.Row{r})
		if got[0].ActivityType != r.ActivityType || !samePayload(got[0].Input, r.Input) {
			s.Errorf("claim of %+v returned %+v", r, got[0])
		}
	}
	s.wantSet("nothing is left", s.claim(10), nil)
}

// Two different names never share a key, wherever a separator stands.
func separators(s *suite) {
	var rows []outbox.Row
	for _, sep := range []string{":", "|", "/", "%", "%3A", "}", "{", "}:{", ",", " ", "\\", "::"} {
		a, b, c := "a", "b", "c"
		for _, split := range [][2]string{{a + sep + b, c}, {a, b + sep + c}, {a + sep, b + sep + c}, {a + sep + b + sep, c}} {
			ns, q := split[0], split[1]
			rows = append(rows,
				outbox.Row{Namespace: ns, WorkflowID: umbel.WorkflowID(q), TaskQueue: "t", ActivityType: "t"},
				outbox.Row{Namespace: "queue" + sep + ns, WorkflowID: "w", TaskQueue: q, ActivityType: "t"},
				outbox.Row{Namespace: "one", WorkflowID: umbel.WorkflowID(ns + "\u2003" + q), TaskQueue: ns, Node: q, ActivityType: "t"},
				outbox.Row{Namespace: "two", WorkflowID: umbel.WorkflowID(ns + "\u2003" + q), TaskQueue: "q" + ns, Node: "", ActivityType: q},
			)
		}
	}
	seen := map[outbox.Key]bool{}
	rows = slices.DeleteFunc(rows, func(r outbox.Row) bool {
		dup := seen[r.Key()]
		seen[r.Key()] = true
		return dup
	})
	s.append(rows...)
	for _, r := range rows {
		s.wantRow("get", withoutTime(s.get(r.Key())), withoutTime(r.WithDefaults()))
	}
	for _, r := range rows {
		scope := outbox.Scope{Namespace: r.Namespace, TaskQueue: r.TaskQueue, Node: r.Node}
		var want []outbox.Row
		for _, other := range rows {
			if scope.Admits(other) && s.get(other.Key()).Status == outbox.Pending {
				want = append(want, other)
			}
		}
		s.wantSet("claim", s.claimScoped(scope, 100), want)
	}
	s.wantSet("nothing is left", s.claim(10), nil)
}

func case50(s *suite) {
	rows := fanOut("00123", 12)
	s.append(rows...)
	s.append(fanOut("123", 1)...)
	s.append(fanOut("0123", 1)...)
	for i, r := range s.scan("", "00123") {
		if r.WorkflowID != "00123" || r.Key().Dispatch() != "00123:"+strconv.Itoa(i) {
			s.Errorf("row %d is of %q", i, r.WorkflowID)
		}
	}
	s.ok(s.Store.Cancel(s.Context(), key("123", 0)))
	s.ok(s.Store.Cancel(s.Context(), key("0123", 0)))
	s.wantKeys("claim", s.claim(100), rows)
}

// The same workflow ID in two namespaces is two workflows.
func namespacesNeverMeet(s *suite) {
	for _, ns := range []string{"", "n", "m"} {
		rows := fanOut("w", 3)
		for i := range rows {
			rows[i].Namespace, rows[i].Input.Data = ns, []byte("of "+ns)
		}
		s.append(rows...)
	}
	s.ok(s.Store.Complete(s.Context(), outbox.Key{Namespace: "n", WorkflowID: "w", Ordinal: 0}))
	s.ok(s.Store.Retry(s.Context(), outbox.Key{Namespace: "m", WorkflowID: "w", Ordinal: 1}, 3, s.now()))
	for _, ns := range []string{"", "n", "m"} {
		for i, r := range s.scan(ns, "w") {
			if string(r.Input.Data) != "of "+ns {
				s.Errorf("%q has input %q", ns, r.Input.Data)
			}
			if done := r.Status == outbox.Done; done != (ns == "n" && i == 0) {
				s.Errorf("%q: row %d is %s", ns, i, r.Status)
			}
			if retried := r.Attempt == 3; retried != (ns == "m" && i == 1) {
				s.Errorf("%q: row %d has attempt %d", ns, i, r.Attempt)
			}
		}
	}
}
