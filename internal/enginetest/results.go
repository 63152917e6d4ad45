package enginetest

import (
	"errors"
	"slices"
	"time"

	"github.com/umbelhq/umbel"
)

// mixed is a closed run with every kind of result, recorded from the last ordinal to the first.
func (s *suite) mixed(id umbel.WorkflowID, n int) {
	s.Helper()
	s.start(id, rows(0, n), once())
	held := s.claim(n)
	for i, r := range slices.Backward(held) {
		switch i % 3 {
		case 0:
			s.finish(r)
		case 1:
			s.report([]umbel.ReportItem{failed(r, failure("of "+r.Key))}, umbel.Recorded)
		default:
			_, err := s.e.Cancel(s.Context(), umbel.CancelRequest{Namespace: ns, WorkflowID: id, Ordinals: []int64{r.Ordinal}})
			s.ok(err)
		}
	}
}

// results: each kind of result with all its fields, in both orders, filtered, with and without inputs.
func results(s *suite) {
	s.mixed("w", 9)
	for _, r := range []umbel.ResultsRequest{
		{}, {Ordered: true}, {WithInputs: true}, {Ordered: true, WithInputs: true}, {Status: umbel.StatusFailed},
		{Status: umbel.StatusCompleted}, {Status: umbel.StatusCancelled, Ordered: true}, {Limit: 2}, {Ordered: true, Limit: 3},
	} {
		r.Namespace, r.WorkflowID = ns, "w"
		got, err := alike(s, "results", umbel.Engine.Results, r)
		s.ok(err)
		for _, x := range got.Results {
			if (x.Status == umbel.StatusCompleted) != (x.Err == nil) || errors.Is(x.Err, umbel.ErrCancelled) != (x.Status == umbel.StatusCancelled) {
				s.Errorf("%s with %v", x.Status, x.Err)
			}
			if r.WithInputs && string(x.Input.Data) != x.Key[1:] || x.Cursor == "" {
				s.Errorf("%+v", x)
			}
		}
	}
}

// resultsPages: pages and cursors, those of single results too, lead through all of them once.
func resultsPages(s *suite) {
	const n = 10
	s.mixed("w", n)
	for _, ordered := range []bool{false, true} {
		var seen []int64
		r := umbel.ResultsRequest{Namespace: ns, WorkflowID: "w", Ordered: ordered, Limit: 3}
		for done := false; !done; {
			p, err := s.e.Results(s.Context(), r)
			s.ok(err)
			for _, x := range p.Results {
				seen = append(seen, x.Ordinal)
			}
			if r.Cursor, done = p.Next, p.Done; len(p.Results) > 1 && !done { // go on after the last but one
				r.Cursor = p.Results[len(p.Results)-2].Cursor
				seen = seen[:len(seen)-1]
			}
			if len(seen) > n {
				s.Fatalf("more than all: %v", seen)
			}
		}
		slices.Sort(seen)
		if len(seen) != n || len(slices.Compact(seen)) != n {
			s.Errorf("ordered %t: read %v", ordered, seen)
		}
	}
}

// resultsWait: a wait ends with a result; when the time is up, the page is empty and not the last.
func resultsWait(s *suite) {
	s.start("w", rows(0, 2))
	held := s.claim(2)
	r := umbel.ResultsRequest{Namespace: ns, WorkflowID: "w", Wait: 100 * time.Millisecond}
	p, err := s.e.Results(s.Context(), r)
	s.ok(err)
	if len(p.Results) > 0 || p.Done {
		s.Errorf("of nothing: %+v", p)
	}
	r.Cursor, r.Wait = p.Next, umbel.MaxPollWait
	got := make(chan umbel.ResultsReply, 1)
	go func() {
		defer close(got)
		if p, err := s.e.Results(s.Context(), r); err != nil {
			s.Error(err)
		} else {
			got <- p
		}
	}()
	s.finish(held[1])
	if p := <-got; len(p.Results) != 1 || p.Results[0].Ordinal != 1 || p.Done {
		s.Errorf("after a result: %+v", p)
	}
}

// resultsPayloads: bytes in, bytes out.
func resultsPayloads(s *suite) {
	out := payloads()
	for i, p := range out {
		id := umbel.WorkflowID('a' + rune(i))
		s.start(id, rows(0, 1))
		s.report([]umbel.ReportItem{done(s.claim(1)[0], p)}, umbel.Recorded)
		for _, ordered := range []bool{false, true} {
			r, err := s.e.Results(s.Context(), umbel.ResultsRequest{Namespace: ns, WorkflowID: id, Ordered: ordered})
			s.ok(err)
			if len(r.Results) != 1 {
				s.Fatalf("%d results", len(r.Results))
			}
			s.equal("result", r.Results[0].Value, p)
		}
	}
}
