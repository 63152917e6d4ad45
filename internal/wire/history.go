package wire

import (
	"github.com/umbelhq/umbel"
	v1 "github.com/umbelhq/umbel/api/gen/umbel/v1"
)

// HistoryRequest encodes r.
func HistoryRequest(r umbel.HistoryRequest) *v1.HistoryRequest {
	return &v1.HistoryRequest{
		Namespace: &r.Namespace, WorkflowId: string(r.WorkflowID), RunId: string(r.RunID), From: r.From,
		Limit: number(r.Limit), Wait: duration(r.Wait),
	}
}

// ToHistoryRequest decodes m.
func ToHistoryRequest(m *v1.HistoryRequest) (umbel.HistoryRequest, error) {
	var d reader
	return umbel.HistoryRequest{
		Namespace: namespace(m.Namespace), WorkflowID: umbel.WorkflowID(m.WorkflowId), RunID: umbel.RunID(m.RunId), From: m.From,
		Limit: int(m.Limit), Wait: d.duration("wait", m.Wait),
	}, d.err()
}

func event(e *umbel.Event) *v1.Event {
	m := &v1.Event{
		Seq: e.Seq, Type: string(e.Type), At: instant(e.At), Key: e.Key, ActivityType: e.Row.Type, Attempt: count(e.Attempt),
		Input: payload(e.Input), RunId: string(e.RunID), TaskQueue: e.TaskQueue, Node: e.Node, Result: payload(e.Result),
		Failure: failure(e.Failure), NextVisible: instant(e.NextVisible), Worker: e.Worker, ClaimedAt: instant(e.ClaimedAt),
		Status: string(e.Status), Reason: valid(e.Reason),
	}
	if e.Type.OfRow() || e.Ordinal != 0 {
		m.Ordinal = new(count(e.Ordinal))
	}
	if e.Type == umbel.WorkflowStarted || e.Scheduled != 0 {
		m.Scheduled = new(count(e.Scheduled))
	}
	return m
}

func (d *reader) event(m *v1.Event) umbel.Event {
	return umbel.Event{
		Seq: m.GetSeq(), Type: umbel.EventType(m.GetType()), At: d.instant("at", m.GetAt()),
		Row: umbel.Row{
			Ordinal: int64(m.GetOrdinal()), Key: m.GetKey(), Type: m.GetActivityType(), Attempt: int(m.GetAttempt()),
			Input: toPayload(m.GetInput()),
		},
		RunID: umbel.RunID(m.GetRunId()), Scheduled: int64(m.GetScheduled()), TaskQueue: m.GetTaskQueue(), Node: m.GetNode(),
		Result: toPayload(m.GetResult()), Failure: toFailure(m.GetFailure()), NextVisible: d.instant("next visible", m.GetNextVisible()),
		Worker: m.GetWorker(), ClaimedAt: d.instant("claimed at", m.GetClaimedAt()), Status: umbel.Status(m.GetStatus()), Reason: m.GetReason(),
	}
}

// HistoryReply encodes r.
func HistoryReply(r umbel.HistoryReply) *v1.HistoryResponse {
	m := &v1.HistoryResponse{Events: make([]*v1.Event, len(r.Events)), Head: r.Head}
	for i := range r.Events {
		m.Events[i] = event(&r.Events[i])
	}
	return m
}

// ToHistoryReply decodes m.
func ToHistoryReply(m *v1.HistoryResponse) (umbel.HistoryReply, error) {
	var d reader
	r := umbel.HistoryReply{Events: make([]umbel.Event, len(m.Events)), Head: m.Head}
	for i, e := range m.Events {
		r.Events[i] = d.event(e)
	}
	return r, d.err()
}
