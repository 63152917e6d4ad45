package server

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/history"
	"github.com/umbelhq/umbel/outbox"
)

// Report implements umbel.Poller.
func (s *Server) Report(ctx context.Context, r umbel.ReportRequest) (umbel.ReportReply, error) {
	if err := s.open(ctx, "report"); err != nil {
		return umbel.ReportReply{}, err
	}
	if err := checkReport(r); err != nil {
		return umbel.ReportReply{}, named("report", "", err)
	}
	reply := umbel.ReportReply{Verdicts: make([]umbel.Verdict, len(r.Items))}
	var done sync.WaitGroup
	var failed firstError
	var abandoned atomic.Bool
	for i, it := range r.Items {
		p, v, err := s.prepare(ctx, r, it)
		if err != nil {
			failed.set(err)
			break
		}
		if v.Code != 0 {
			reply.Verdicts[i] = v
			continue
		}
		done.Add(1)
		p.abandoned = &abandoned
		p.answer = func(a history.Answer, err error) {
			if err != nil {
				failed.set(err)
			} else {
				reply.Verdicts[i] = verdict(p.Settled, a)
			}
			done.Done()
		}
		s.reporters[p.run.Shard.Index].add(p)
	}
	for _, rp := range s.reporters {
		rp.wake()
	}
	// an item that a script has is settled whatever becomes of this call; one that still waits is forgotten with it,
	// since its worker reports it again
	settled := make(chan struct{})
	go func() { done.Wait(); close(settled) }()
	select {
	case <-settled:
	case <-ctx.Done():
		abandoned.Store(true)
		return umbel.ReportReply{}, ended(ctx, "report")
	}
	if err := failed.get(); err != nil {
		return umbel.ReportReply{}, named("report", "", err)
	}
	return reply, nil
}

func checkReport(r umbel.ReportRequest) error {
	if err := umbel.ValidateName("namespace", r.Namespace); err != nil {
		return err
	}
	if err := umbel.ValidateName("worker", r.Worker); err != nil {
		return err
	}
	if len(r.Items) > umbel.MaxReportItems {
		return umbel.Limit("report", int64(len(r.Items)), "items of a call", umbel.MaxReportItems)
	}
	bytes := 0
	for i, it := range r.Items {
		if bytes += sizeOf(it.Result, it.Failure); bytes > umbel.MaxReportBytes && i > 0 {
			return umbel.Limit("report", int64(bytes), "bytes of a call", umbel.MaxReportBytes)
		}
	}
	return nil
}

// sizeOf is what the texts and bytes of an outcome take.
func sizeOf(result umbel.Payload, f *umbel.Failure) int {
	n := len(result.Data)
	for depth := 0; f != nil && depth <= umbel.MaxErrorCauses; f, depth = f.Cause, depth+1 { // deeper ones are cut
		n += len(f.Type) + len(f.Message) + len(f.Stack)
	}
	return n
}

// prepare checks an item and decides what is to become of its row. A verdict means that it is decided already.
func (s *Server) prepare(ctx context.Context, r umbel.ReportRequest, it umbel.ReportItem) (*pending, umbel.Verdict, error) {
	t, ok := parseToken(it.Token, s.rows.Space().Shards())
	if !ok {
		return nil, umbel.Verdict{Code: umbel.Refused, Err: invalidToken(it.Token)}, nil
	}
	if refused := checkItem(it); refused != nil {
		return nil, umbel.Verdict{Code: umbel.Refused, Err: refused}, nil //nolint:nilerr // it is the item's verdict
	}
	run, err := s.rows.Run(ctx, t.shard, t.run)
	if err != nil {
		return nil, umbel.Verdict{}, err
	}
	if run == nil { // another run's report, or of one that is gone
		return nil, umbel.Verdict{Code: umbel.Dropped}, nil
	}
	if run.Namespace != r.Namespace || t.route >= len(run.Routes) {
		return nil, umbel.Verdict{Code: umbel.Refused, Err: invalidToken(it.Token)}, nil
	}
	p := &pending{run: run, Settled: history.Settled{
		Nonce: t.nonce, Route: t.route, Ordinal: t.ordinal, Attempt: t.attempt, Worker: r.Worker, ClaimedAt: t.claimedAt,
	}}
	switch it.Outcome {
	case umbel.OutcomeCompleted:
		p.Ending, p.Result = history.Completed, it.Result
	case umbel.OutcomeReleased:
		p.Ending = history.Released
	case umbel.OutcomeFailed:
		f := it.Failure.Clip()
		f.Attempt = t.attempt
		decide(&p.Settled, run, f)
		if it.RetryAfter > 0 && p.Ending == history.Retried {
			p.Wait = it.RetryAfter
		}
	}
	return p, umbel.Verdict{}, nil
}

// decide says what follows a failed attempt: another one by the policy of the row's type, or the end.
func decide(s *history.Settled, run *outbox.Run, f *umbel.Failure) {
	policy := run.Policy(run.Routes[s.Route].Type).Retry
	s.Failure = f
	if !policy.Retries(s.Attempt, f) {
		s.Ending = history.Failed
		return
	}
	s.Ending, s.Wait = history.Retried, policy.Delay(s.Attempt, rand.Float64()) //nolint:gosec // jitter
}

func checkItem(it umbel.ReportItem) *umbel.Error {
	var err error
	switch it.Outcome {
	case umbel.OutcomeCompleted:
		err = it.Result.Validate("result")
	case umbel.OutcomeFailed:
		if it.Failure == nil {
			err = umbel.Invalid("failure", "", "must be set for a failed attempt")
		} else {
			err = umbel.ValidateDuration("retry after", it.RetryAfter, 0, umbel.MaxDelay)
		}
	case umbel.OutcomeReleased:
	default:
		err = umbel.Invalid("outcome", "", "must be completed, failed or released")
	}
	e, _ := err.(*umbel.Error) //nolint:errorlint // validators return nothing else
	return e
}

// verdict is what a worker is told.
func verdict(s history.Settled, a history.Answer) umbel.Verdict {
	switch a.Code {
	case history.CodeDropped, history.CodeAbsent:
		return umbel.Verdict{Code: umbel.Dropped, Attempt: a.Attempt}
	case history.CodeStale:
		return umbel.Verdict{Code: umbel.Stale}
	case history.Accepted:
	}
	switch s.Ending {
	case history.Retried:
		return umbel.Verdict{Code: umbel.Retrying, Attempt: s.Attempt}
	case history.Released:
		return umbel.Verdict{Code: umbel.Released}
	default:
		return umbel.Verdict{Code: umbel.Recorded, Attempt: s.Attempt}
	}
}

// firstError keeps the first error that it is given.
type firstError struct {
	mu  sync.Mutex
	err error
}

func (f *firstError) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
}

func (f *firstError) get() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}
