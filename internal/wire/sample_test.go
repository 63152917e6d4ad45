package wire_test

import (
	"errors"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/umbelhq/umbel"
	v1 "github.com/umbelhq/umbel/api/gen/umbel/v1"
	"github.com/umbelhq/umbel/internal/wire"
)

// sample is a value of the seam as a message, with the way back.
type sample struct {
	name    string
	message proto.Message
	// same reports how what m decodes to differs from the value: nothing if it does not.
	same func(t *testing.T, m proto.Message) string
	// stable reports how what m decodes to changes when it is encoded and decoded again.
	stable func(m proto.Message) (string, error)
	// random draws a value and reports how it changes on the way.
	random func(t *rapid.T) string
}

func diff(a, b any) string {
	return cmp.Diff(a, b, cmpopts.EquateEmpty(), cmpopts.EquateNaNs(), cmp.FilterValues(textOnly, cmp.Comparer(sameText)))
}

// sampleOf makes a sample; whole turns a value that was drawn at random into one that a server or client may say.
func sampleOf[V any, M proto.Message](name string, v V, encode func(V) M, decode func(M) (V, error), whole ...func(*V)) sample {
	return sample{
		name: name, message: encode(v),
		same: func(t *testing.T, m proto.Message) string {
			t.Helper()
			got, err := decode(m.(M))
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			return diff(v, got)
		},
		stable: func(m proto.Message) (string, error) {
			once, err := decode(m.(M))
			if err != nil {
				return "", err
			}
			twice, err := decode(encode(once))
			if err != nil {
				return "what was decoded once cannot be decoded again: " + err.Error(), nil //nolint:nilerr // it is the difference
			}
			return diff(once, twice), nil
		},
		random: func(t *rapid.T) string {
			v := anyOf[V]().Draw(t, name)
			for _, f := range whole {
				f(&v)
			}
			got, err := decode(encode(v))
			if err != nil {
				return err.Error()
			}
			return diff(v, got)
		},
	}
}

// textOnly holds for errors of which only the text travels.
func textOnly(a, b error) bool {
	for _, err := range []error{a, b} {
		switch err.(type) { //nolint:errorlint // a result holds the failure itself
		case nil, *umbel.Failure, *umbel.Error:
			return false
		}
	}
	return true
}

func sameText(a, b error) bool { return a.Error() == b.Error() }

// errorDetail encodes an error as servers send it.
func errorDetail(e *umbel.Error) *v1.Error {
	if e == nil {
		return &v1.Error{}
	}
	ce, _ := errors.AsType[*connect.Error](wire.Error(e))
	m, _ := ce.Details()[0].Value()
	return m.(*v1.Error)
}

func toErrorDetail(m *v1.Error) (*umbel.Error, error) {
	ce := connect.NewError(connect.CodeUnknown, nil)
	d, err := connect.NewErrorDetail(m)
	if err != nil {
		return nil, err
	}
	ce.AddDetail(d)
	e, _ := wire.ToError(ce)
	return e, nil
}

// samples has every message, and in them, taken together, every field.
func samples() []sample {
	at := time.Date(2026, 11, 30, 12, 34, 56, 789e6, time.UTC)
	in := umbel.Payload{ContentType: "application/json", Data: []byte("\x00\xff{}")}
	out := umbel.Payload{ContentType: "text/plain", Data: []byte("result")}
	fail := &umbel.Failure{
		Type: "Kind", Message: "message ü", Stack: "stack", Attempt: 3, NonRetryable: true,
		Cause: &umbel.Failure{Type: "Inner", Message: "inner"},
	}
	refused := &umbel.Error{
		Code: umbel.CodeAlreadyExists, Op: "start", WorkflowID: "w", RunID: "r", Field: "field", Value: `"value"`, Reason: "reason",
		NotApplied: true, Err: &umbel.Error{Code: umbel.CodeInternal, Err: errors.New("cause")},
	}
	rows := []umbel.StagedRow{{
		Type: "t", TaskQueue: "q", Node: "n", Key: "k", Delay: 1500 * time.Millisecond, NotBefore: at, Input: in,
	}, {Type: "t"}}
	run := umbel.RunInfo{
		WorkflowID: "w", RunID: "r", Status: umbel.StatusFailed, Types: []string{"t", "u"},
		Counts:    umbel.Counts{Scheduled: 15, Pending: 1, Claimed: 2, Completed: 3, Failed: 4, Cancelled: 5},
		StartedAt: at, ClosedAt: at.Add(time.Hour),
	}
	row := umbel.Row{Ordinal: 7, Key: "k", Type: "t", Attempt: 2, Input: in}
	poll := umbel.PollRequest{
		Namespace: "ns", TaskQueue: "q", Node: "n", Types: []string{"t", "u"}, Worker: "me", MaxRows: 10, Wait: 50 * time.Second,
	}
	return []sample{
		sampleOf("begin_request", umbel.BeginRequest{Namespace: "ns", WorkflowID: "w"}, wire.BeginRequest, wire.ToBeginRequest),
		sampleOf("begin_reply", umbel.BeginReply{Exists: true, RunID: "r", Digest: umbel.Digest{1, 31: 2}, StagingID: "s"}, wire.BeginReply, wire.ToBeginReply),
		sampleOf("stage_request", umbel.StageRequest{Namespace: "ns", WorkflowID: "w", StagingID: "s", Offset: 1 << 20, Rows: rows}, wire.StageRequest, wire.ToStageRequest),
		sampleOf("stage_reply", umbel.StageReply{Next: 1<<20 + 2}, wire.StageReply, wire.ToStageReply),
		sampleOf("commit_request", umbel.CommitRequest{
			Namespace: "ns", WorkflowID: "w", StagingID: "s", Rows: rows, Scheduled: 5, Digest: umbel.Digest{3, 31: 4}, OnExisting: umbel.Reject,
			Types: []umbel.TypePolicy{{Type: "t", StartToClose: time.Minute, Retry: umbel.RetryPolicy{
				Initial: time.Second, Cap: time.Hour, Factor: 2.5, Jitter: 0.125, MaxAttempts: 9, NonRetryable: []string{"Never"},
			}}},
		}, wire.CommitRequest, wire.ToCommitRequest),
		sampleOf("commit_reply", umbel.CommitReply{RunID: "r", Scheduled: 5, Attached: true}, wire.CommitReply, wire.ToCommitReply),
		sampleOf("discard_request", umbel.DiscardRequest{Namespace: "ns", WorkflowID: "w", StagingID: "s"}, wire.DiscardRequest, wire.ToDiscardRequest),
		sampleOf("discard_reply", struct{}{}, wire.DiscardReply, wire.ToDiscardReply),
		sampleOf("poll_request", poll, wire.PollRequest, wire.ToPollRequest),
		sampleOf("poll_reply", umbel.PollReply{Rows: []umbel.ClaimedRow{{
			Row: row, WorkflowID: "w", RunID: "r", Namespace: "ns", TaskQueue: "q", Node: "n", Token: "1.2.3", Lease: 30 * time.Second,
			StartToClose: time.Minute, LastFailure: fail,
		}, {Row: umbel.Row{Type: "t", Attempt: 1}, Namespace: "ns", TaskQueue: "q", Lease: 30 * time.Second}}}, wire.PollReply, wire.ToPollReply(poll), wholePoll(poll)),
		sampleOf("renew_request", umbel.RenewRequest{Namespace: "ns", Worker: "me", Tokens: []umbel.Token{"1.2", "1.3"}}, wire.RenewRequest, wire.ToRenewRequest),
		sampleOf("renew_reply", umbel.RenewReply{States: []umbel.HoldState{umbel.Held, umbel.HoldLost, umbel.HoldCancelled, umbel.HoldInvalid}}, wire.RenewReply, wire.ToRenewReply),
		sampleOf("report_request", umbel.ReportRequest{Namespace: "ns", Worker: "me", Items: []umbel.ReportItem{
			{Token: "1.2", Outcome: umbel.OutcomeCompleted, Result: out}, {Token: "1.3", Outcome: umbel.OutcomeFailed, Failure: fail, RetryAfter: time.Second},
			{Token: "1.4", Outcome: umbel.OutcomeReleased},
		}}, wire.ReportRequest, wire.ToReportRequest),
		sampleOf("report_reply", umbel.ReportReply{Verdicts: []umbel.Verdict{
			{Code: umbel.Recorded, Attempt: 1}, {Code: umbel.Retrying, Attempt: 2}, {Code: umbel.Released}, {Code: umbel.Dropped, Attempt: 3},
			{Code: umbel.Stale}, {Code: umbel.Refused, Err: umbel.Invalid("outcome", "9", "must be one")},
		}}, wire.ReportReply, wire.ToReportReply, wholeReport),
		sampleOf("leave_request", umbel.LeaveRequest{Namespace: "ns", Worker: "me"}, wire.LeaveRequest, wire.ToLeaveRequest),
		sampleOf("leave_reply", struct{}{}, wire.LeaveReply, wire.ToLeaveReply),
		sampleOf("describe_request", umbel.DescribeRequest{Namespace: "ns", WorkflowID: "w", RunID: "r", Wait: time.Second}, wire.DescribeRequest, wire.ToDescribeRequest),
		sampleOf("describe_reply", umbel.DescribeReply{RunInfo: run}, wire.DescribeReply, wire.ToDescribeReply),
		sampleOf("results_request", umbel.ResultsRequest{
			Namespace: "ns", WorkflowID: "w", RunID: "r", Cursor: "c", Ordered: true, Status: umbel.StatusFailed, WithInputs: true, Limit: 100, Wait: time.Second,
		}, wire.ResultsRequest, wire.ToResultsRequest),
		sampleOf("results_reply", umbel.ResultsReply{RunID: "r", Next: "n", Done: true, Results: []umbel.Result[umbel.Payload]{
			{Row: row, Status: umbel.StatusCompleted, Value: out, Cursor: "c1"},
			{Row: row, Status: umbel.StatusFailed, Err: fail, Cursor: "c2"},
			{Row: umbel.Row{Ordinal: 8, Type: "t"}, Status: umbel.StatusCancelled, Err: errors.New("ordinal 8: umbel: cancelled"), Cursor: "c3"},
		}}, wire.ResultsReply, wire.ToResultsReply, wholeResults),
		sampleOf("cancel_request", umbel.CancelRequest{Namespace: "ns", WorkflowID: "w", RunID: "r", Reason: "reason", Ordinals: []int64{0, 1 << 23}}, wire.CancelRequest, wire.ToCancelRequest),
		sampleOf("cancel_reply", umbel.CancelReply{RunID: "r", Cancelled: 4}, wire.CancelReply, wire.ToCancelReply),
		sampleOf("history_request", umbel.HistoryRequest{Namespace: "ns", WorkflowID: "w", RunID: "r", From: 5, Limit: 100, Wait: time.Second}, wire.HistoryRequest, wire.ToHistoryRequest),
		sampleOf("history_reply", umbel.HistoryReply{Head: 10, Events: []umbel.Event{
			{Seq: 1, Type: umbel.WorkflowStarted, At: at, RunID: "r", Scheduled: 3},
			{Seq: 2, Type: umbel.ActivityScheduled, At: at, Row: umbel.Row{Ordinal: 0, Key: "k", Type: "t", Input: in}, TaskQueue: "q", Node: "n"},
			{Seq: 3, Type: umbel.ActivityStarted, At: at, Row: umbel.Row{Ordinal: 0, Attempt: 1}},
			{Seq: 4, Type: umbel.ActivityAttemptFailed, At: at, Row: umbel.Row{Ordinal: 1, Attempt: 1}, Failure: fail, NextVisible: at.Add(time.Second), Worker: "me", ClaimedAt: at},
			{Seq: 5, Type: umbel.ActivityCompleted, At: at, Row: umbel.Row{Ordinal: 0, Attempt: 1}, Result: out, Worker: "me", ClaimedAt: at},
			{Seq: 6, Type: umbel.ActivityFailed, At: at, Row: umbel.Row{Ordinal: 1, Attempt: 2}, Failure: fail, Worker: "me", ClaimedAt: at},
			{Seq: 7, Type: umbel.CancelRequested, At: at, Reason: "reason"},
			{Seq: 8, Type: umbel.ActivityCancelled, At: at, Row: umbel.Row{Ordinal: 2}},
			{Seq: 9, Type: umbel.FanOutDecided, At: at, Status: umbel.StatusFailed},
			{Seq: 10, Type: umbel.WorkflowClosed, At: at, Status: umbel.StatusFailed},
		}}, wire.HistoryReply, wire.ToHistoryReply),
		sampleOf("list_request", umbel.ListRequest{Namespace: "ns", Status: umbel.StatusRunning, Type: "t", Prefix: "p", Cursor: "c", Limit: 50}, wire.ListRequest, wire.ToListRequest),
		sampleOf("list_reply", umbel.ListReply{Runs: []umbel.RunInfo{run, {WorkflowID: "w2"}}, Next: "n", Done: true}, wire.ListReply, wire.ToListReply),
		sampleOf("error", refused, errorDetail, toErrorDetail, wholeError),
	}
}
