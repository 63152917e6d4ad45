package wire

import (
	"github.com/umbelhq/umbel"
	v1 "github.com/umbelhq/umbel/api/gen/umbel/v1"
)

// BeginRequest encodes r.
func BeginRequest(r umbel.BeginRequest) *v1.BeginRequest {
	return &v1.BeginRequest{Namespace: &r.Namespace, WorkflowId: string(r.WorkflowID)}
}

// ToBeginRequest decodes m.
func ToBeginRequest(m *v1.BeginRequest) (umbel.BeginRequest, error) {
	return umbel.BeginRequest{Namespace: namespace(m.Namespace), WorkflowID: umbel.WorkflowID(m.WorkflowId)}, nil
}

// BeginReply encodes r.
func BeginReply(r umbel.BeginReply) *v1.BeginResponse {
	m := &v1.BeginResponse{Exists: r.Exists, RunId: string(r.RunID), StagingId: string(r.StagingID)}
	if r.Digest != (umbel.Digest{}) {
		m.Digest = r.Digest[:]
	}
	return m
}

// ToBeginReply decodes m.
func ToBeginReply(m *v1.BeginResponse) (umbel.BeginReply, error) {
	d, err := toDigest(m.Digest)
	return umbel.BeginReply{
		Exists: m.Exists, RunID: umbel.RunID(m.RunId), Digest: d, StagingID: umbel.StagingID(m.StagingId),
	}, err
}

func toDigest(b []byte) (umbel.Digest, error) {
	var d umbel.Digest
	if len(b) != 0 && len(b) != len(d) {
		return d, umbel.Limit("digest", int64(len(b)), "bytes, and must have that many if it is given", int64(len(d)))
	}
	copy(d[:], b)
	return d, nil
}

func stagedRows(rows []umbel.StagedRow) []*v1.StagedRow {
	out := make([]*v1.StagedRow, len(rows))
	block := make([]v1.StagedRow, len(rows))
	for i := range rows {
		r, m := &rows[i], &block[i]
		m.Type, m.TaskQueue, m.Node, m.Key = r.Type, r.TaskQueue, r.Node, r.Key
		m.Delay, m.NotBefore, m.Input = duration(r.Delay), instant(r.NotBefore), payload(r.Input)
		out[i] = m
	}
	return out
}

func (d *reader) stagedRows(rows []*v1.StagedRow) []umbel.StagedRow {
	out := make([]umbel.StagedRow, len(rows))
	for i, m := range rows {
		before := d.bad
		out[i] = umbel.StagedRow{
			Type: m.GetType(), TaskQueue: m.GetTaskQueue(), Node: m.GetNode(), Key: m.GetKey(),
			Delay: d.duration("delay", m.GetDelay()), NotBefore: d.instant("not-before", m.GetNotBefore()), Input: toPayload(m.GetInput()),
		}
		if d.bad != before {
			d.bad.Field = ofRowInCall(i) + d.bad.Field
		}
	}
	return out
}

// StageRequest encodes r.
func StageRequest(r umbel.StageRequest) *v1.StageRequest {
	return &v1.StageRequest{
		Namespace: &r.Namespace, WorkflowId: string(r.WorkflowID), StagingId: string(r.StagingID),
		Offset: r.Offset, Rows: stagedRows(r.Rows),
	}
}

// ToStageRequest decodes m.
func ToStageRequest(m *v1.StageRequest) (umbel.StageRequest, error) {
	var d reader
	return umbel.StageRequest{
		Namespace: namespace(m.Namespace), WorkflowID: umbel.WorkflowID(m.WorkflowId), StagingID: umbel.StagingID(m.StagingId),
		Offset: m.Offset, Rows: d.stagedRows(m.Rows),
	}, d.err()
}

// StageReply encodes r.
func StageReply(r umbel.StageReply) *v1.StageResponse { return &v1.StageResponse{Next: r.Next} }

// ToStageReply decodes m.
func ToStageReply(m *v1.StageResponse) (umbel.StageReply, error) {
	return umbel.StageReply{Next: m.Next}, nil
}

func onExisting(o umbel.OnExisting) v1.OnExisting {
	if o < 0 {
		return v1.OnExisting(number(int(o)))
	}
	return v1.OnExisting(number(int(o)) + 1)
}

func toOnExisting(o v1.OnExisting) umbel.OnExisting {
	switch {
	case o == v1.OnExisting_ON_EXISTING_UNSPECIFIED:
		return umbel.SameInputs
	case o < 0:
		return umbel.OnExisting(o)
	}
	return umbel.OnExisting(int(o) - 1)
}

func typePolicies(types []umbel.TypePolicy) []*v1.TypePolicy {
	out := make([]*v1.TypePolicy, len(types))
	for i, t := range types {
		p := t.Retry
		out[i] = &v1.TypePolicy{
			Type: t.Type, StartToClose: duration(t.StartToClose),
			Retry: &v1.RetryPolicy{
				Initial: duration(p.Initial), Cap: duration(p.Cap), Factor: p.Factor, Jitter: p.Jitter,
				MaxAttempts: number(p.MaxAttempts), NonRetryable: p.NonRetryable,
			},
		}
	}
	return out
}

func (d *reader) typePolicies(types []*v1.TypePolicy) []umbel.TypePolicy {
	out := make([]umbel.TypePolicy, len(types))
	for i, t := range types {
		p := t.GetRetry()
		out[i] = umbel.TypePolicy{
			Type: t.GetType(), StartToClose: d.duration("start-to-close", t.GetStartToClose()),
			Retry: umbel.RetryPolicy{
				Initial: d.duration("retry initial", p.GetInitial()), Cap: d.duration("retry cap", p.GetCap()),
				Factor: p.GetFactor(), Jitter: p.GetJitter(),
				MaxAttempts: int(p.GetMaxAttempts()), NonRetryable: p.GetNonRetryable(),
			},
		}
	}
	return out
}

// CommitRequest encodes r.
func CommitRequest(r umbel.CommitRequest) *v1.CommitRequest {
	m := &v1.CommitRequest{
		Namespace: &r.Namespace, WorkflowId: string(r.WorkflowID), StagingId: string(r.StagingID), Rows: stagedRows(r.Rows),
		Scheduled: &r.Scheduled, Types: typePolicies(r.Types), OnExisting: onExisting(r.OnExisting),
	}
	if r.Digest != (umbel.Digest{}) {
		m.Digest = r.Digest[:]
	}
	return m
}

// ToCommitRequest decodes m.
func ToCommitRequest(m *v1.CommitRequest) (umbel.CommitRequest, error) {
	var d reader
	r := umbel.CommitRequest{
		Namespace: namespace(m.Namespace), WorkflowID: umbel.WorkflowID(m.WorkflowId), StagingID: umbel.StagingID(m.StagingId),
		Rows: d.stagedRows(m.Rows), Scheduled: or(m.Scheduled, int64(len(m.Rows))), Types: d.typePolicies(m.Types),
		OnExisting: toOnExisting(m.OnExisting),
	}
	digest, err := toDigest(m.Digest)
	if d.bad != nil {
		err = d.bad
	}
	r.Digest = digest
	return r, err
}

// CommitReply encodes r.
func CommitReply(r umbel.CommitReply) *v1.CommitResponse {
	return &v1.CommitResponse{RunId: string(r.RunID), Scheduled: r.Scheduled, Attached: r.Attached}
}

// ToCommitReply decodes m.
func ToCommitReply(m *v1.CommitResponse) (umbel.CommitReply, error) {
	return umbel.CommitReply{RunID: umbel.RunID(m.RunId), Scheduled: m.Scheduled, Attached: m.Attached}, nil
}

// DiscardRequest encodes r.
func DiscardRequest(r umbel.DiscardRequest) *v1.DiscardRequest {
	return &v1.DiscardRequest{Namespace: &r.Namespace, WorkflowId: string(r.WorkflowID), StagingId: string(r.StagingID)}
}

// ToDiscardRequest decodes m.
func ToDiscardRequest(m *v1.DiscardRequest) (umbel.DiscardRequest, error) {
	return umbel.DiscardRequest{
		Namespace: namespace(m.Namespace), WorkflowID: umbel.WorkflowID(m.WorkflowId), StagingID: umbel.StagingID(m.StagingId),
	}, nil
}

// ToDiscardReply decodes nothing: an answer is all that it is.
func ToDiscardReply(*v1.DiscardResponse) (struct{}, error) { return struct{}{}, nil }

// DiscardReply encodes nothing.
func DiscardReply(struct{}) *v1.DiscardResponse { return &v1.DiscardResponse{} }
