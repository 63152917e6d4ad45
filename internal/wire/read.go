package wire

import (
	"fmt"

	"github.com/umbelhq/umbel"
	v1 "github.com/umbelhq/umbel/api/gen/umbel/v1"
)

func runInfo(r umbel.RunInfo) *v1.RunInfo {
	c := r.Counts
	return &v1.RunInfo{
		WorkflowId: string(r.WorkflowID), RunId: string(r.RunID), Status: string(r.Status), Types: r.Types,
		Counts: &v1.Counts{
			Scheduled: count(c.Scheduled), Pending: count(c.Pending), Claimed: count(c.Claimed),
			Completed: count(c.Completed), Failed: count(c.Failed), Cancelled: count(c.Cancelled),
		},
		StartedAt: instant(r.StartedAt), ClosedAt: instant(r.ClosedAt),
	}
}

func (d *reader) runInfo(m *v1.RunInfo) umbel.RunInfo {
	c := m.GetCounts()
	return umbel.RunInfo{
		WorkflowID: umbel.WorkflowID(m.GetWorkflowId()), RunID: umbel.RunID(m.GetRunId()), Status: umbel.Status(m.GetStatus()), Types: m.GetTypes(),
		Counts: umbel.Counts{
			Scheduled: int64(c.GetScheduled()), Pending: int64(c.GetPending()), Claimed: int64(c.GetClaimed()),
			Completed: int64(c.GetCompleted()), Failed: int64(c.GetFailed()), Cancelled: int64(c.GetCancelled()),
		},
		StartedAt: d.instant("started at", m.GetStartedAt()), ClosedAt: d.instant("closed at", m.GetClosedAt()),
	}
}

// DescribeRequest encodes r.
func DescribeRequest(r umbel.DescribeRequest) *v1.DescribeRequest {
	return &v1.DescribeRequest{
		Namespace: &r.Namespace, WorkflowId: string(r.WorkflowID), RunId: string(r.RunID), Wait: duration(r.Wait),
	}
}

// ToDescribeRequest decodes m.
func ToDescribeRequest(m *v1.DescribeRequest) (umbel.DescribeRequest, error) {
	var d reader
	return umbel.DescribeRequest{
		Namespace: namespace(m.Namespace), WorkflowID: umbel.WorkflowID(m.WorkflowId), RunID: umbel.RunID(m.RunId),
		Wait: d.duration("wait", m.Wait),
	}, d.err()
}

// DescribeReply encodes r.
func DescribeReply(r umbel.DescribeReply) *v1.DescribeResponse {
	return &v1.DescribeResponse{Run: runInfo(r.RunInfo)}
}

// ToDescribeReply decodes m.
func ToDescribeReply(m *v1.DescribeResponse) (umbel.DescribeReply, error) {
	var d reader
	return umbel.DescribeReply{RunInfo: d.runInfo(m.Run)}, d.err()
}

// ResultsRequest encodes r.
func ResultsRequest(r umbel.ResultsRequest) *v1.ResultsRequest {
	return &v1.ResultsRequest{
		Namespace: &r.Namespace, WorkflowId: string(r.WorkflowID), RunId: string(r.RunID), Cursor: opaque(r.Cursor),
		Ordered: r.Ordered, Status: string(r.Status), WithInputs: r.WithInputs, Limit: number(r.Limit), Wait: duration(r.Wait),
	}
}

// ToResultsRequest decodes m.
func ToResultsRequest(m *v1.ResultsRequest) (umbel.ResultsRequest, error) {
	var d reader
	return umbel.ResultsRequest{
		Namespace: namespace(m.Namespace), WorkflowID: umbel.WorkflowID(m.WorkflowId), RunID: umbel.RunID(m.RunId),
		Cursor: umbel.Cursor(m.Cursor), Ordered: m.Ordered, Status: umbel.Status(m.Status), WithInputs: m.WithInputs,
		Limit: int(m.Limit), Wait: d.duration("wait", m.Wait),
	}, d.err()
}

// ResultsReply encodes r.
func ResultsReply(r umbel.ResultsReply) *v1.ResultsResponse {
	m := &v1.ResultsResponse{
		RunId: string(r.RunID), Results: make([]*v1.Result, len(r.Results)), Next: string(r.Next), Done: r.Done,
	}
	block := make([]v1.Result, len(r.Results))
	for i := range r.Results {
		x, b := &r.Results[i], &block[i]
		b.Ordinal, b.Key, b.Type, b.Attempt, b.Input = count(x.Ordinal), x.Key, x.Type, count(x.Attempt), payload(x.Input)
		b.Status, b.Cursor, b.Result = string(x.Status), string(x.Cursor), payload(x.Value)
		if f, ok := x.Err.(*umbel.Failure); ok { //nolint:errorlint // a result holds the failure itself
			b.Failure = failure(f)
		}
		m.Results[i] = b
	}
	return m
}

// ToResultsReply decodes m.
func ToResultsReply(m *v1.ResultsResponse) (umbel.ResultsReply, error) {
	r := umbel.ResultsReply{
		RunID: umbel.RunID(m.RunId), Results: make([]umbel.Result[umbel.Payload], len(m.Results)),
		Next: umbel.Cursor(m.Next), Done: m.Done,
	}
	for i, x := range m.Results {
		res := umbel.Result[umbel.Payload]{
			Row: umbel.Row{
				Ordinal: int64(x.GetOrdinal()), Key: x.GetKey(), Type: x.GetType(), Attempt: int(x.GetAttempt()), Input: toPayload(x.GetInput()),
			},
			Status: umbel.Status(x.GetStatus()), Value: toPayload(x.GetResult()), Cursor: umbel.Cursor(x.GetCursor()),
		}
		switch {
		case x.GetFailure() != nil:
			res.Err = toFailure(x.Failure)
		case res.Status == umbel.StatusCancelled:
			res.Err = fmt.Errorf("ordinal %d: %w", res.Ordinal, umbel.ErrCancelled)
		case res.Status != umbel.StatusCompleted: // a later version's word must not pass for a success
			res.Err = &umbel.Failure{Type: "Unsupported", Message: "outcome " + string(res.Status) + " is not known to this version", Attempt: res.Attempt}
		}
		r.Results[i] = res
	}
	return r, nil
}

// CancelRequest encodes r.
func CancelRequest(r umbel.CancelRequest) *v1.CancelRequest {
	return &v1.CancelRequest{
		Namespace: &r.Namespace, WorkflowId: string(r.WorkflowID), RunId: string(r.RunID), Reason: r.Reason, Ordinals: r.Ordinals,
	}
}

// ToCancelRequest decodes m.
func ToCancelRequest(m *v1.CancelRequest) (umbel.CancelRequest, error) {
	return umbel.CancelRequest{
		Namespace: namespace(m.Namespace), WorkflowID: umbel.WorkflowID(m.WorkflowId), RunID: umbel.RunID(m.RunId),
		Reason: m.Reason, Ordinals: m.Ordinals,
	}, nil
}

// CancelReply encodes r.
func CancelReply(r umbel.CancelReply) *v1.CancelResponse {
	return &v1.CancelResponse{RunId: string(r.RunID), Cancelled: count(r.Cancelled)}
}

// ToCancelReply decodes m.
func ToCancelReply(m *v1.CancelResponse) (umbel.CancelReply, error) {
	return umbel.CancelReply{RunID: umbel.RunID(m.RunId), Cancelled: int64(m.Cancelled)}, nil
}

// ListRequest encodes r.
func ListRequest(r umbel.ListRequest) *v1.ListRequest {
	return &v1.ListRequest{
		Namespace: &r.Namespace, Status: string(r.Status), Type: r.Type, Prefix: r.Prefix, Cursor: opaque(r.Cursor), Limit: number(r.Limit),
	}
}

// ToListRequest decodes m.
func ToListRequest(m *v1.ListRequest) (umbel.ListRequest, error) {
	return umbel.ListRequest{
		Namespace: namespace(m.Namespace), Status: umbel.Status(m.Status), Type: m.Type, Prefix: m.Prefix,
		Cursor: umbel.Cursor(m.Cursor), Limit: int(m.Limit),
	}, nil
}

// ListReply encodes r.
func ListReply(r umbel.ListReply) *v1.ListResponse {
	m := &v1.ListResponse{Runs: make([]*v1.RunInfo, len(r.Runs)), Next: string(r.Next), Done: r.Done}
	for i, run := range r.Runs {
		m.Runs[i] = runInfo(run)
	}
	return m
}

// ToListReply decodes m.
func ToListReply(m *v1.ListResponse) (umbel.ListReply, error) {
	var d reader
	r := umbel.ListReply{Runs: make([]umbel.RunInfo, len(m.Runs)), Next: umbel.Cursor(m.Next), Done: m.Done}
	for i, run := range m.Runs {
		r.Runs[i] = d.runInfo(run)
	}
	return r, d.err()
}
