package worker

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/umbelhq/umbel"
)

// endless has rows for every poll and records every outcome.
type endless struct {
	umbel.Gatherer
	left, done atomic.Int64
	finished   chan struct{}
	tokens     []umbel.Token
}

func (e *endless) Poll(ctx context.Context, r umbel.PollRequest) (umbel.PollReply, error) {
	n := min(int64(r.MaxRows), e.left.Load())
	e.left.Add(-n)
	if n == 0 {
		<-ctx.Done()
		return umbel.PollReply{}, ctx.Err()
	}
	rows := make([]umbel.ClaimedRow, n)
	for i := range rows {
		rows[i].Type, rows[i].Token, rows[i].Lease = r.Types[0], e.tokens[i], umbel.DefaultLease
	}
	return umbel.PollReply{Rows: rows}, nil
}

func (e *endless) Leave(context.Context, umbel.LeaveRequest) error { return nil }

func (e *endless) Renew(_ context.Context, r umbel.RenewRequest) (umbel.RenewReply, error) {
	return umbel.RenewReply{States: make([]umbel.HoldState, len(r.Tokens))}, nil
}

func (e *endless) Report(_ context.Context, r umbel.ReportRequest) (umbel.ReportReply, error) {
	vs := make([]umbel.Verdict, len(r.Items))
	for i := range vs {
		vs[i].Code = umbel.Recorded
	}
	if e.done.Add(-int64(len(vs))) == 0 {
		close(e.finished)
	}
	return umbel.ReportReply{Verdicts: vs}, nil
}

// BenchmarkRow is what the worker itself takes for a row: no engine, no handler.
func BenchmarkRow(b *testing.B) {
	e := &endless{finished: make(chan struct{})}
	e.left.Store(int64(b.N))
	e.done.Store(int64(b.N))
	for i := range umbel.MaxPollRows {
		e.tokens = append(e.tokens, umbel.Token(fmt.Sprintf("token-%040d", i)))
	}
	w, err := New(e, Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	HandleFunc(w, "echo", echo)
	ctx, cancel := context.WithCancel(b.Context())
	ran := make(chan error)
	b.ReportAllocs()
	b.ResetTimer()
	go func() { ran <- w.Run(ctx) }()
	<-e.finished
	b.StopTimer()
	cancel()
	if err := <-ran; err != nil {
		b.Fatal(err)
	}
	s := w.Stats()
	b.ReportMetric(float64(b.N)/float64(s.Polls), "rows/poll")
	b.ReportMetric(float64(b.N)/float64(s.Reports), "rows/report")
}
