package server

import (
	"context"

	"github.com/umbelhq/umbel"
	v1 "github.com/umbelhq/umbel/api/gen/umbel/v1"
	"github.com/umbelhq/umbel/internal/wire"
)

// workflowService is the side of clients and operators, as the generated handler wants it.
type workflowService struct{ e umbel.Engine }

func (s workflowService) Begin(ctx context.Context, m *v1.BeginRequest) (*v1.BeginResponse, error) {
	return answer(ctx, m, wire.ToBeginRequest, s.e.Begin, wire.BeginReply)
}

func (s workflowService) Stage(ctx context.Context, m *v1.StageRequest) (*v1.StageResponse, error) {
	return answer(ctx, m, wire.ToStageRequest, s.e.Stage, wire.StageReply)
}

func (s workflowService) Commit(ctx context.Context, m *v1.CommitRequest) (*v1.CommitResponse, error) {
	return answer(ctx, m, wire.ToCommitRequest, s.e.Commit, wire.CommitReply)
}

func (s workflowService) Discard(ctx context.Context, m *v1.DiscardRequest) (*v1.DiscardResponse, error) {
	discard := func(ctx context.Context, r umbel.DiscardRequest) (struct{}, error) {
		return struct{}{}, s.e.Discard(ctx, r)
	}
	return answer(ctx, m, wire.ToDiscardRequest, discard, wire.DiscardReply)
}

func (s workflowService) Describe(ctx context.Context, m *v1.DescribeRequest) (*v1.DescribeResponse, error) {
	return answer(ctx, m, wire.ToDescribeRequest, s.e.Describe, wire.DescribeReply)
}

func (s workflowService) Results(ctx context.Context, m *v1.ResultsRequest) (*v1.ResultsResponse, error) {
	return answer(ctx, m, wire.ToResultsRequest, s.e.Results, wire.ResultsReply)
}

func (s workflowService) Cancel(ctx context.Context, m *v1.CancelRequest) (*v1.CancelResponse, error) {
	return answer(ctx, m, wire.ToCancelRequest, s.e.Cancel, wire.CancelReply)
}

func (s workflowService) History(ctx context.Context, m *v1.HistoryRequest) (*v1.HistoryResponse, error) {
	return answer(ctx, m, wire.ToHistoryRequest, s.e.History, wire.HistoryReply)
}

func (s workflowService) List(ctx context.Context, m *v1.ListRequest) (*v1.ListResponse, error) {
	return answer(ctx, m, wire.ToListRequest, s.e.List, wire.ListReply)
}

// workerService is the side of workers.
type workerService struct{ e umbel.Engine }

func (s workerService) Poll(ctx context.Context, m *v1.PollRequest) (*v1.PollResponse, error) {
	return answer(ctx, m, wire.ToPollRequest, s.poll, wire.PollReply)
}

// poll leaves a reply of ours to [handOver], which sees whether it reached the worker.
func (s workerService) poll(ctx context.Context, r umbel.PollRequest) (umbel.PollReply, error) {
	own, ok := s.e.(*Server)
	h, here := ctx.Value(handKey{}).(*hand)
	if !ok || !here {
		return s.e.Poll(ctx, r)
	}
	rows, err := own.poll(ctx, r)
	if err != nil {
		return umbel.PollReply{}, err
	}
	h.server, h.rows = own, rows
	return own.reply(rows), nil
}

func (s workerService) Leave(ctx context.Context, m *v1.LeaveRequest) (*v1.LeaveResponse, error) {
	leave := func(ctx context.Context, r umbel.LeaveRequest) (struct{}, error) {
		return struct{}{}, s.e.Leave(ctx, r)
	}
	return answer(ctx, m, wire.ToLeaveRequest, leave, wire.LeaveReply)
}

func (s workerService) Renew(ctx context.Context, m *v1.RenewRequest) (*v1.RenewResponse, error) {
	return answer(ctx, m, wire.ToRenewRequest, s.e.Renew, wire.RenewReply)
}

func (s workerService) Report(ctx context.Context, m *v1.ReportRequest) (*v1.ReportResponse, error) {
	return answer(ctx, m, wire.ToReportRequest, s.e.Report, wire.ReportReply)
}
