package wire

import (
	"github.com/umbelhq/umbel"
	v1 "github.com/umbelhq/umbel/api/gen/umbel/v1"
)

// PollRequest encodes r.
func PollRequest(r umbel.PollRequest) *v1.PollRequest {
	return &v1.PollRequest{
		Namespace: &r.Namespace, TaskQueue: &r.TaskQueue, Node: r.Node, Types: r.Types, Worker: r.Worker,
		MaxRows: new(number(r.MaxRows)), Wait: duration(r.Wait),
	}
}

// ToPollRequest decodes m.
func ToPollRequest(m *v1.PollRequest) (umbel.PollRequest, error) {
	var d reader
	return umbel.PollRequest{
		Namespace: namespace(m.Namespace), TaskQueue: or(m.TaskQueue, umbel.DefaultTaskQueue), Node: m.Node, Types: m.Types,
		Worker: m.Worker, MaxRows: int(or(m.MaxRows, 1)), Wait: d.duration("wait", m.Wait),
	}, d.err()
}

// PollReply encodes r. All rows of a reply have one lease, namespace and task queue.
func PollReply(r umbel.PollReply) *v1.PollResponse {
	m := &v1.PollResponse{Rows: make([]*v1.ClaimedRow, len(r.Rows))}
	block := make([]struct {
		row   v1.ClaimedRow
		input v1.Payload
	}, len(r.Rows))
	for i := range r.Rows {
		c, b := &r.Rows[i], &block[i]
		row := &b.row
		row.Token, row.WorkflowId, row.RunId = string(c.Token), string(c.WorkflowID), string(c.RunID)
		row.Ordinal, row.Attempt, row.Type, row.Key, row.Node = count(c.Ordinal), count(c.Attempt), c.Type, c.Key, c.Node
		row.StartToClose, row.LastFailure = duration(c.StartToClose), failure(c.LastFailure)
		b.input.ContentType, b.input.Data = c.Input.ContentType, c.Input.Data
		row.Input = &b.input
		m.Rows[i] = row
	}
	if len(r.Rows) > 0 {
		m.Lease = duration(r.Rows[0].Lease)
	}
	return m
}

// ToPollReply decodes the replies to r.
func ToPollReply(r umbel.PollRequest) func(*v1.PollResponse) (umbel.PollReply, error) {
	return func(m *v1.PollResponse) (umbel.PollReply, error) {
		var d reader
		lease := d.duration("lease", m.Lease)
		reply := umbel.PollReply{Rows: make([]umbel.ClaimedRow, len(m.Rows))}
		for i, row := range m.Rows {
			reply.Rows[i] = umbel.ClaimedRow{
				Row: umbel.Row{
					Ordinal: int64(row.GetOrdinal()), Key: row.GetKey(), Type: row.GetType(), Attempt: int(row.GetAttempt()),
					Input: toPayload(row.GetInput()),
				},
				WorkflowID: umbel.WorkflowID(row.GetWorkflowId()), RunID: umbel.RunID(row.GetRunId()),
				Namespace: r.Namespace, TaskQueue: r.TaskQueue, Node: row.GetNode(), Token: umbel.Token(row.GetToken()),
				Lease: lease, StartToClose: d.duration("start-to-close", row.GetStartToClose()),
				LastFailure: toFailure(row.GetLastFailure()),
			}
		}
		return reply, d.err()
	}
}

// LeaveRequest encodes r.
func LeaveRequest(r umbel.LeaveRequest) *v1.LeaveRequest {
	return &v1.LeaveRequest{Namespace: &r.Namespace, Worker: r.Worker}
}

// ToLeaveRequest decodes m.
func ToLeaveRequest(m *v1.LeaveRequest) (umbel.LeaveRequest, error) {
	return umbel.LeaveRequest{Namespace: namespace(m.Namespace), Worker: m.Worker}, nil
}

// LeaveReply encodes nothing.
func LeaveReply(struct{}) *v1.LeaveResponse { return &v1.LeaveResponse{} }

// ToLeaveReply decodes nothing: an answer is all that it is.
func ToLeaveReply(*v1.LeaveResponse) (struct{}, error) { return struct{}{}, nil }

// RenewRequest encodes r.
func RenewRequest(r umbel.RenewRequest) *v1.RenewRequest {
	return &v1.RenewRequest{Namespace: &r.Namespace, Worker: r.Worker, Tokens: mapped(r.Tokens, opaque)}
}

// ToRenewRequest decodes m.
func ToRenewRequest(m *v1.RenewRequest) (umbel.RenewRequest, error) {
	return umbel.RenewRequest{Namespace: namespace(m.Namespace), Worker: m.Worker, Tokens: mapped(m.Tokens, func(s string) umbel.Token { return umbel.Token(s) })}, nil
}

func mapped[From, To any](in []From, to func(From) To) []To {
	out := make([]To, len(in))
	for i, v := range in {
		out[i] = to(v)
	}
	return out
}

// RenewReply encodes r.
func RenewReply(r umbel.RenewReply) *v1.RenewResponse {
	m := &v1.RenewResponse{States: make([]v1.HoldState, len(r.States))}
	for i, s := range r.States {
		m.States[i] = v1.HoldState(number(int(s)))
	}
	return m
}

// ToRenewReply decodes m.
func ToRenewReply(m *v1.RenewResponse) (umbel.RenewReply, error) {
	r := umbel.RenewReply{States: make([]umbel.HoldState, len(m.States))}
	for i, s := range m.States {
		r.States[i] = umbel.HoldState(s)
	}
	return r, nil
}

// ReportRequest encodes r.
func ReportRequest(r umbel.ReportRequest) *v1.ReportRequest {
	m := &v1.ReportRequest{Namespace: &r.Namespace, Worker: r.Worker, Items: make([]*v1.ReportItem, len(r.Items))}
	block := make([]v1.ReportItem, len(r.Items))
	for i := range r.Items {
		it, item := &r.Items[i], &block[i]
		item.Token, item.Outcome, item.Result = opaque(it.Token), v1.Outcome(number(int(it.Outcome))), payload(it.Result)
		item.Failure, item.RetryAfter = failure(it.Failure), duration(it.RetryAfter)
		m.Items[i] = item
	}
	return m
}

// ToReportRequest decodes m.
func ToReportRequest(m *v1.ReportRequest) (umbel.ReportRequest, error) {
	var d reader
	r := umbel.ReportRequest{Namespace: namespace(m.Namespace), Worker: m.Worker, Items: make([]umbel.ReportItem, len(m.Items))}
	for i, it := range m.Items {
		r.Items[i] = umbel.ReportItem{
			Token: umbel.Token(it.GetToken()), Outcome: umbel.Outcome(it.GetOutcome()), Result: toPayload(it.GetResult()),
			Failure: toFailure(it.GetFailure()), RetryAfter: d.duration("retry-after", it.GetRetryAfter()),
		}
	}
	return r, d.err()
}

// ReportReply encodes r.
func ReportReply(r umbel.ReportReply) *v1.ReportResponse {
	m := &v1.ReportResponse{Verdicts: make([]*v1.Verdict, len(r.Verdicts))}
	block := make([]v1.Verdict, len(r.Verdicts))
	for i, v := range r.Verdicts {
		block[i].Code, block[i].Attempt, block[i].Error = v1.VerdictCode(number(int(v.Code))), count(v.Attempt), detail(v.Err)
		m.Verdicts[i] = &block[i]
	}
	return m
}

// ToReportReply decodes m.
func ToReportReply(m *v1.ReportResponse) (umbel.ReportReply, error) {
	r := umbel.ReportReply{Verdicts: make([]umbel.Verdict, len(m.Verdicts))}
	for i, v := range m.Verdicts {
		r.Verdicts[i] = umbel.Verdict{Code: umbel.VerdictCode(v.GetCode()), Attempt: int(v.GetAttempt()), Err: toError(v.GetError())}
	}
	return r, nil
}
