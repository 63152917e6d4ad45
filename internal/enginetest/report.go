package enginetest

import (
	"strings"
	"time"

	"github.com/umbelhq/umbel"
)

// report: every verdict there is, and the same report again.
func report(s *suite) {
	s.start("w", rows(0, 5), soon())
	held := s.claim(5)
	fail := failed(held[1], &umbel.Failure{Type: "T", Message: "m"})
	s.report([]umbel.ReportItem{done(held[0], text("r")), fail, released(held[2])}, umbel.Recorded, umbel.Retrying, umbel.Released)
	for range 2 {
		v := s.report([]umbel.ReportItem{done(held[0], text("other")), fail, released(held[2])}, umbel.Dropped, umbel.Stale, umbel.Stale)
		if v[0].Attempt != 1 {
			s.Errorf("dropped for attempt %d, want 1", v[0].Attempt)
		}
	}
	_, err := s.e.Cancel(s.Context(), umbel.CancelRequest{Namespace: ns, WorkflowID: "w", Ordinals: []int64{3}})
	s.ok(err)
	v := s.report([]umbel.ReportItem{done(held[3], text("late"))}, umbel.Dropped)
	s.equal("dropped for a cancel", v[0], umbel.Verdict{Code: umbel.Dropped})
	s.report(nil)
	later := failed(held[4], &umbel.Failure{Type: "T"})
	later.RetryAfter = time.Hour
	v = s.report([]umbel.ReportItem{later}, umbel.Retrying)
	if v[0].Attempt != 1 {
		s.Errorf("retrying after attempt %d", v[0].Attempt)
	}
	h, err := s.e.History(s.Context(), umbel.HistoryRequest{Namespace: ns, WorkflowID: "w"})
	s.ok(err)
	if e := lastOf(h.Events, umbel.ActivityAttemptFailed); e.NextVisible.Sub(e.At) < time.Hour-time.Second {
		s.Errorf("the next attempt is due %v after the failure", e.NextVisible.Sub(e.At))
	}
	s.counts(umbel.Counts{Scheduled: 5, Pending: 3, Completed: 1, Cancelled: 1})
}

// reportFailures: a failure keeps its fields and causes, cut to their limits; so do its texts, made valid.
func reportFailures(s *suite) {
	s.start("w", rows(0, 3), once())
	held := s.claim(3)
	deep := &umbel.Failure{Type: "Deepest"}
	for range 3 * umbel.MaxErrorCauses {
		deep = &umbel.Failure{Type: "Deep", Message: "m", Cause: deep}
	}
	all := failure("all")
	s.report([]umbel.ReportItem{
		failed(held[0], all),
		failed(held[1], deep),
		failed(held[2], &umbel.Failure{Type: "a\xff", Message: strings.Repeat("ü", umbel.MaxErrorMessageBytes), Stack: "\xc0"}),
	}, umbel.Recorded, umbel.Recorded, umbel.Recorded)
	r, err := alike(s, "results", umbel.Engine.Results, umbel.ResultsRequest{Namespace: ns, WorkflowID: "w", Ordered: true})
	s.ok(err)
	want := *all
	want.Attempt = 1
	s.equal("all fields", r.Results[0].Err, error(&want))
	n := 0
	for f := r.Results[1].Err.(*umbel.Failure); f != nil; f = f.Cause { //nolint:errorlint,forcetypeassert // a failed row holds its failure
		n++
	}
	if n != umbel.MaxErrorCauses+1 {
		s.Errorf("a chain of %d failures is kept, want %d", n, umbel.MaxErrorCauses+1)
	}
	f := r.Results[2].Err.(*umbel.Failure) //nolint:errorlint,forcetypeassert // a failed row holds its failure
	if f.Type != "a\uFFFD" || len(f.Message) > umbel.MaxErrorMessageBytes || !strings.HasPrefix(f.Message, "üüü") || f.Stack != "\uFFFD" {
		s.Errorf("texts became %q, %d bytes, %q", f.Type, len(f.Message), f.Stack)
	}
}

// reportRefused: one bad item does not fail its batch, and its verdict says what is wrong with it.
func reportRefused(s *suite) {
	s.start("w", rows(0, 4), once())
	held := s.claim(4)
	bad := done(held[1], umbel.Payload{ContentType: "a\nb"})
	items := []umbel.ReportItem{
		done(held[0], text("r")), bad, {Token: "no token", Outcome: umbel.OutcomeReleased}, {Token: held[2].Token, Outcome: 77},
		{Token: held[2].Token, Outcome: umbel.OutcomeFailed}, done(held[3], text("r")),
	}
	got := s.report(items, umbel.Recorded, umbel.Refused, umbel.Refused, umbel.Refused, umbel.Refused, umbel.Recorded)
	direct, err := s.direct.Report(s.Context(), umbel.ReportRequest{Namespace: ns, Worker: me, Items: items})
	s.ok(err)
	for i := 1; i <= 4; i++ {
		if got[i].Err == nil {
			s.Errorf("verdict %d has no error", i)
			continue
		}
		s.sameFields("verdict", got[i].Err, direct.Verdicts[i].Err)
	}
	s.counts(umbel.Counts{Scheduled: 4, Claimed: 2, Completed: 2})
}
