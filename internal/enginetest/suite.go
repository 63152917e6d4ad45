// Package enginetest says what an umbel.Engine is, in tests: [Run] is the conformance suite of the seam between clients,
// workers and servers, which holds in process and over the network alike. There is a file for each verb.
package enginetest

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/umbelhq/umbel"
)

// Engines are the engine under test and another way to the same installation, which is empty.
type Engines struct {
	// Tested is the engine that the suite is about.
	Tested umbel.Engine
	// Direct is a server in process. What Tested reads must be equal to what Direct does.
	Direct umbel.Engine
}

// Run runs the suite. For each case it calls in once, which opens engines, passes them to the case, and ends them when
// that returns; in may run all of it in a bubble of testing/synctest.
func Run(t *testing.T, in func(t *testing.T, test func(t *testing.T, e Engines))) {
	t.Helper()
	for _, c := range []struct {
		name string
		test func(*suite)
	}{
		{"Begin", begin},
		{"Stage", stage}, {"StageLost", stageLost},
		{"Commit", commit}, {"CommitCarriesAll", commitCarriesAll}, {"CommitOnExisting", commitOnExisting},
		{"Discard", discard},
		{"Poll", poll}, {"PollWaits", pollWaits}, {"PollPayloads", pollPayloads}, {"PollEnds", pollEnds},
		{"Renew", renew},
		{"Leave", leave},
		{"Report", report}, {"ReportFailures", reportFailures}, {"ReportRefused", reportRefused},
		{"Describe", describe}, {"DescribeWaits", describeWaits},
		{"Results", results}, {"ResultsPages", resultsPages}, {"ResultsWait", resultsWait}, {"ResultsPayloads", resultsPayloads},
		{"Cancel", cancel},
		{"History", history}, {"HistoryWaits", historyWaits},
		{"List", list},
		{"NotFound", notFound}, {"Invalid", invalid}, {"EndedContext", endedContext},
	} {
		t.Run(c.name, func(t *testing.T) {
			in(t, func(t *testing.T, e Engines) { c.test(&suite{T: t, e: e.Tested, direct: e.Direct}) })
		})
	}
}

// suite is one case under way.
type suite struct {
	*testing.T

	e, direct umbel.Engine
}

const (
	ns   = "space {}:*"
	pool = "pool/ü"
	task = "task"
	me   = "worker 1"
)

// ok fails the test if err is an error.
func (s *suite) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("unexpected error: %v", err)
	}
}

// equal wants two values to be the same; empty and nil lists are.
func (s *suite) equal(what string, got, want any) {
	s.Helper()
	if d := cmp.Diff(want, got, same()...); d != "" {
		s.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func same() []cmp.Option {
	return []cmp.Option{cmpopts.EquateEmpty(), cmp.Comparer(samePayload), cmp.FilterValues(opaque, cmp.Comparer(sameText))}
}

// samePayload compares bytes as one: there may be two million.
func samePayload(a, b umbel.Payload) bool {
	return a.ContentType == b.ContentType && bytes.Equal(a.Data, b.Data)
}

// opaque holds for errors that have no fields to compare.
func opaque(a, b error) bool {
	for _, err := range []error{a, b} {
		switch err.(type) { //nolint:errorlint // a result holds the failure itself
		case nil, *umbel.Failure, *umbel.Error:
			return false
		}
	}
	return true
}

func sameText(a, b error) bool {
	return a.Error() == b.Error() && errors.Is(a, umbel.ErrCancelled) == errors.Is(b, umbel.ErrCancelled)
}

// is wants an *umbel.Error of the kind of a sentinel, and returns it.
func (s *suite) is(what string, err, target error) umbel.Error {
	s.Helper()
	e, ok := errors.AsType[*umbel.Error](err)
	if !ok || !errors.Is(err, target) {
		s.Fatalf("%s: %v, want %v", what, err, target)
	}
	return *e
}

// alike makes a call on both engines, which must return the same, error included.
func alike[Req, Rep any](s *suite, what string, call func(umbel.Engine, context.Context, Req) (Rep, error), r Req) (Rep, error) {
	s.Helper()
	got, err := call(s.e, s.Context(), r)
	want, wantErr := call(s.direct, s.Context(), r)
	s.equal(what, got, want)
	s.sameFields(what, err, wantErr)
	return got, err
}

// sameFields wants two errors to say the same in every field.
func (s *suite) sameFields(what string, got, want error) {
	s.Helper()
	g, gok := errors.AsType[*umbel.Error](got)
	w, wok := errors.AsType[*umbel.Error](want)
	if gok != wok || gok && g.Error() != w.Error() {
		s.Errorf("%s: the error is %v, want %v", what, got, want)
		return
	}
	if !gok {
		return
	}
	x, y := *g, *w
	x.Err, y.Err = nil, nil
	if x != y {
		s.Errorf("%s: the error is %+v, want %+v", what, x, y)
	}
}

func text(v string) umbel.Payload {
	return umbel.Payload{ContentType: "text/plain", Data: []byte(v)}
}

// rows are n rows whose inputs are their ordinals from at on.
func rows(at, n int) []umbel.StagedRow {
	out := make([]umbel.StagedRow, n)
	for i := range out {
		out[i] = umbel.StagedRow{Type: task, TaskQueue: pool, Key: "k" + strconv.Itoa(at+i), Input: text(strconv.Itoa(at + i))}
	}
	return out
}

// start starts a run in one call.
func (s *suite) start(id umbel.WorkflowID, rows []umbel.StagedRow, types ...umbel.TypePolicy) umbel.RunID {
	s.Helper()
	r, err := s.e.Commit(s.Context(), umbel.CommitRequest{
		Namespace: ns, WorkflowID: id, Rows: rows, Scheduled: int64(len(rows)), Types: types,
	})
	s.ok(err)
	return r.RunID
}

// once is a policy without another attempt.
func once() umbel.TypePolicy {
	return umbel.TypePolicy{Type: task, Retry: umbel.RetryPolicy{MaxAttempts: 1}}
}

// soon is a policy whose other attempts follow at once.
func soon() umbel.TypePolicy {
	return umbel.TypePolicy{Type: task, Retry: umbel.RetryPolicy{Initial: time.Millisecond, Cap: time.Millisecond}}
}

func pollRequest(n int) umbel.PollRequest {
	return umbel.PollRequest{
		Namespace: ns, TaskQueue: pool, Types: []string{"other", task}, Worker: me, MaxRows: n, Wait: 5 * time.Second,
	}
}

// claim polls until it holds n rows.
func (s *suite) claim(n int) []umbel.ClaimedRow {
	s.Helper()
	var held []umbel.ClaimedRow
	for len(held) < n {
		r, err := s.e.Poll(s.Context(), pollRequest(min(n-len(held), umbel.MaxPollRows)))
		s.ok(err)
		if len(r.Rows) == 0 {
			s.Fatalf("claimed %d of %d rows", len(held), n)
		}
		held = append(held, r.Rows...)
	}
	return held
}

func done(r umbel.ClaimedRow, result umbel.Payload) umbel.ReportItem {
	return umbel.ReportItem{Token: r.Token, Outcome: umbel.OutcomeCompleted, Result: result}
}

func failed(r umbel.ClaimedRow, f *umbel.Failure) umbel.ReportItem {
	return umbel.ReportItem{Token: r.Token, Outcome: umbel.OutcomeFailed, Failure: f}
}

func released(r umbel.ClaimedRow) umbel.ReportItem {
	return umbel.ReportItem{Token: r.Token, Outcome: umbel.OutcomeReleased}
}

// report reports items and wants their verdicts.
func (s *suite) report(items []umbel.ReportItem, want ...umbel.VerdictCode) []umbel.Verdict {
	s.Helper()
	r, err := s.e.Report(s.Context(), umbel.ReportRequest{Namespace: ns, Worker: me, Items: items})
	s.ok(err)
	if len(r.Verdicts) != len(items) {
		s.Fatalf("%d verdicts on %d items", len(r.Verdicts), len(items))
	}
	for i, v := range r.Verdicts {
		if i < len(want) && v.Code != want[i] {
			s.Fatalf("verdict %d is %+v, want %d", i, v, want[i])
		}
	}
	return r.Verdicts
}

// finish completes rows with their inputs.
func (s *suite) finish(held ...umbel.ClaimedRow) {
	s.Helper()
	for _, r := range held {
		s.report([]umbel.ReportItem{done(r, r.Input)}, umbel.Recorded)
	}
}

func (s *suite) counts(want umbel.Counts) {
	s.Helper()
	d, err := s.e.Describe(s.Context(), umbel.DescribeRequest{Namespace: ns, WorkflowID: "w"})
	s.ok(err)
	s.equal("counts", d.Counts, want)
}

// failure is one with everything in it.
func failure(message string) *umbel.Failure {
	return &umbel.Failure{
		Type: "Kind", Message: message, Stack: "main.go:1\n\tü", NonRetryable: true,
		Cause: &umbel.Failure{Type: "Inner", Message: "because \u2026", Cause: &umbel.Failure{Type: "Innermost", Message: "\x00"}},
	}
}
