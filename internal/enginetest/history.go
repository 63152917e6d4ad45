package enginetest

import (
	"slices"
	"time"

	"github.com/umbelhq/umbel"
)

// lastOf is the last event of a type.
func lastOf(events []umbel.Event, typ umbel.EventType) umbel.Event {
	for _, e := range slices.Backward(events) {
		if e.Type == typ {
			return e
		}
	}
	return umbel.Event{}
}

// history: every type of event with all its fields, in pages, without a gap.
func history(s *suite) {
	all := rows(0, 4)
	all[0].Node = "n"
	s.start("w", all, soon())
	r := pollRequest(4)
	r.Node = "n"
	var held []umbel.ClaimedRow
	for len(held) < 4 {
		p, err := s.e.Poll(s.Context(), r)
		s.ok(err)
		held = append(held, p.Rows...)
		r.MaxRows = 4 - len(held)
		if len(p.Rows) == 0 {
			s.Fatal("not all rows are handed out")
		}
	}
	slices.SortFunc(held, func(a, b umbel.ClaimedRow) int { return int(a.Ordinal - b.Ordinal) })
	retried := failure("again")
	retried.NonRetryable = false
	s.report([]umbel.ReportItem{done(held[0], text("r")), failed(held[1], retried), failed(held[2], failure("never"))},
		umbel.Recorded, umbel.Retrying, umbel.Recorded)
	_, err := s.e.Cancel(s.Context(), umbel.CancelRequest{Namespace: ns, WorkflowID: "w", Reason: "over"})
	s.ok(err)
	whole, err := alike(s, "history", umbel.Engine.History, umbel.HistoryRequest{Namespace: ns, WorkflowID: "w"})
	s.ok(err)
	for i, e := range whole.Events {
		if e.Seq != int64(i+1) || e.At.IsZero() {
			s.Errorf("event %d is %+v", i, e)
		}
	}
	for _, typ := range []umbel.EventType{
		umbel.WorkflowStarted, umbel.ActivityScheduled, umbel.ActivityStarted, umbel.ActivityAttemptFailed, umbel.ActivityCompleted,
		umbel.ActivityFailed, umbel.ActivityCancelled, umbel.CancelRequested, umbel.FanOutDecided, umbel.WorkflowClosed,
	} {
		if lastOf(whole.Events, typ).Type != typ {
			s.Errorf("no event is a %s", typ)
		}
	}
	if e := lastOf(whole.Events, umbel.ActivityCompleted); e.Worker != me || e.ClaimedAt.IsZero() || string(e.Result.Data) != "r" {
		s.Errorf("%+v", e)
	}
	var paged []umbel.Event
	for from := int64(0); from <= whole.Head; from = int64(len(paged)) + 1 {
		p, err := s.e.History(s.Context(), umbel.HistoryRequest{Namespace: ns, WorkflowID: "w", From: from, Limit: 4})
		s.ok(err)
		if len(p.Events) == 0 || len(p.Events) > 4 || p.Head != whole.Head {
			s.Fatalf("from %d: %d events, head %d", from, len(p.Events), p.Head)
		}
		paged = append(paged, p.Events...)
	}
	s.equal("in pages", paged, whole.Events)
	past, err := alike(s, "past the end", umbel.Engine.History, umbel.HistoryRequest{Namespace: ns, WorkflowID: "w", From: whole.Head + 1})
	s.ok(err)
	if len(past.Events) > 0 {
		s.Errorf("past the end: %+v", past)
	}
}

// historyWaits: a wait ends with an event, or with the run.
func historyWaits(s *suite) {
	run := s.start("w", rows(0, 1))
	held := s.claim(1)
	h, err := s.e.History(s.Context(), umbel.HistoryRequest{Namespace: ns, WorkflowID: "w"})
	s.ok(err)
	r := umbel.HistoryRequest{Namespace: ns, WorkflowID: "w", RunID: run, From: h.Head + 1, Wait: 100 * time.Millisecond}
	p, err := s.e.History(s.Context(), r)
	s.ok(err)
	if len(p.Events) > 0 || p.Head != h.Head {
		s.Errorf("of nothing: %+v", p)
	}
	r.Wait = umbel.MaxPollWait
	got := make(chan umbel.HistoryReply, 1)
	go func() {
		defer close(got)
		if p, err := s.e.History(s.Context(), r); err != nil {
			s.Error(err)
		} else {
			got <- p
		}
	}()
	s.finish(held...)
	if p := <-got; len(p.Events) == 0 || p.Events[0].Seq != h.Head+1 {
		s.Errorf("after an event: %+v", p)
	}
	h, err = s.e.History(s.Context(), umbel.HistoryRequest{Namespace: ns, WorkflowID: "w"})
	s.ok(err)
	r.From = h.Head + 1
	p, err = s.e.History(s.Context(), r)
	s.ok(err)
	if len(p.Events) > 0 {
		s.Errorf("after the close: %+v", p)
	}
}
