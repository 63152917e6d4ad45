package remote

import (
	"context"

	v1 "github.com/umbelhq/umbel/api/gen/umbel/v1"
)

// The calls of a server, in a form that [call] can name without knowing which server it will be.

func (s *server) begin(ctx context.Context, m *v1.BeginRequest) (*v1.BeginResponse, error) {
	return s.workflow.Begin(ctx, m)
}

func (s *server) stage(ctx context.Context, m *v1.StageRequest) (*v1.StageResponse, error) {
	return s.workflow.Stage(ctx, m)
}

func (s *server) commit(ctx context.Context, m *v1.CommitRequest) (*v1.CommitResponse, error) {
	return s.workflow.Commit(ctx, m)
}

func (s *server) discard(ctx context.Context, m *v1.DiscardRequest) (*v1.DiscardResponse, error) {
	return s.workflow.Discard(ctx, m)
}

func (s *server) poll(ctx context.Context, m *v1.PollRequest) (*v1.PollResponse, error) {
	return s.worker.Poll(ctx, m)
}

func (s *server) leave(ctx context.Context, m *v1.LeaveRequest) (*v1.LeaveResponse, error) {
	return s.worker.Leave(ctx, m)
}

func (s *server) renew(ctx context.Context, m *v1.RenewRequest) (*v1.RenewResponse, error) {
	return s.worker.Renew(ctx, m)
}

func (s *server) report(ctx context.Context, m *v1.ReportRequest) (*v1.ReportResponse, error) {
	return s.worker.Report(ctx, m)
}

func (s *server) describe(ctx context.Context, m *v1.DescribeRequest) (*v1.DescribeResponse, error) {
	return s.workflow.Describe(ctx, m)
}

func (s *server) results(ctx context.Context, m *v1.ResultsRequest) (*v1.ResultsResponse, error) {
	return s.workflow.Results(ctx, m)
}

func (s *server) cancel(ctx context.Context, m *v1.CancelRequest) (*v1.CancelResponse, error) {
	return s.workflow.Cancel(ctx, m)
}

func (s *server) history(ctx context.Context, m *v1.HistoryRequest) (*v1.HistoryResponse, error) {
	return s.workflow.History(ctx, m)
}

func (s *server) list(ctx context.Context, m *v1.ListRequest) (*v1.ListResponse, error) {
	return s.workflow.List(ctx, m)
}
