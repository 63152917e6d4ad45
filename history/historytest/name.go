package historytest

import (
	"fmt"
	"strings"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/history"
)

func nameCases() []testCase {
	return []testCase{
		{"Names_Promise17", names},
		{"BadNames", badNames},
	}
}

// Two workflows never share a history, whatever they are called.
func names(s *suite) {
	var flows []history.Workflow
	for _, n := range []string{
		"a", "a:", ":a", "a:b", "a:b:c", "{x}", "}{", "{}:*", "*", "%3A", "a%3Ab", "a b", "/", "\\", "🌿", "00123", "123",
		"a|b", "a\u00e9", strings.Repeat("x:", 127) + "y",
	} {
		flows = append(flows, history.Workflow{Namespace: n, ID: "w"}, history.Workflow{ID: umbel.WorkflowID(n), RunID: umbel.RunID(n)})
	}
	for _, sep := range []string{":", "|", "/", "}", "%", "}:{"} {
		flows = append(flows,
			history.Workflow{Namespace: "p" + sep + "q", ID: "r"},
			history.Workflow{Namespace: "p", ID: umbel.WorkflowID("q" + sep + "r")})
	}
	at := make([]history.Position, len(flows))
	for i, wf := range flows {
		at[i] = s.acquire(wf)
		its := items(1 + i%3)
		for j := range its {
			its[j].Key = fmt.Sprintf("of %d", i)
		}
		s.dispatch(wf, &at[i], its...)
	}
	for i, wf := range flows {
		s.complete(wf, &at[i], success(0, 1), history.Recorded)
	}
	for i, wf := range flows {
		n := 1 + i%3
		events := s.all(wf)
		if len(events) != 2*n+1 || len(s.scan(wf)) != n || s.head(wf) != int64(2*n+1) {
			s.Errorf("%+q has %d events and %d rows, want %d and %d", wf, len(events), len(s.scan(wf)), 2*n+1, n)
			continue
		}
		if want := fmt.Sprintf("of %d", i); events[0].Key != want {
			s.Errorf("%+q has the item %q, want %q", wf, events[0].Key, want)
		}
	}
}

func badNames(s *suite) {
	long := strings.Repeat("x", umbel.MaxNameBytes+1)
	bad := []history.Workflow{{}, {Namespace: "n"}}
	for _, n := range []string{long, "a\x00", "\n", "\xff"} {
		bad = append(bad,
			history.Workflow{Namespace: n, ID: "w"}, history.Workflow{ID: umbel.WorkflowID(n)},
			history.Workflow{ID: "w", RunID: umbel.RunID(n)})
	}
	s.unchanged("calls for an invalid workflow", flow(), func() {
		for _, wf := range bad {
			what := fmt.Sprintf("%.60q", fmt.Sprint(wf))
			_, err := s.Store.Acquire(s.Context(), wf)
			s.refused("acquire "+what, err, umbel.ErrInvalid)
			for name, write := range s.writes(wf) {
				s.refused(name+" "+what, write(history.Position{Token: "x"}), umbel.ErrInvalid)
			}
			_, err = s.Store.Head(s.Context(), wf)
			s.refused("head "+what, err, umbel.ErrInvalid)
			_, err = s.Store.Read(s.Context(), wf, 1, 1)
			s.refused("read "+what, err, umbel.ErrInvalid)
		}
	})
}
