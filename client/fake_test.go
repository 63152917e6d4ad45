package client_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/umbelhq/umbel"
)

// fake is an Engine in memory. Its fields are set before it is used.
type fake struct {
	// fault is asked before each call: op and its count from 1. before is returned in place of the call, after
	// in place of its reply.
	fault func(op string, n int) (before, after error)
	// handle resolves every row at commit. Nil: rows stay open until the test resolves them.
	handle func(ordinal int64, row umbel.StagedRow) (umbel.Payload, error)
	// page is how many results a page holds. 0: all.
	page int
	// forget keeps no rows, only counts.
	forget bool
	// partial makes Stage take half of the rows it is given.
	partial bool

	mu       sync.Mutex
	calls    map[string]int
	requests []any
	staged   map[umbel.StagingID]*staging
	runs     map[string]*fakeRun // by namespace and workflow
	changed  chan struct{}
}

type staging struct {
	rows []umbel.StagedRow
	n    int64
}

type fakeRun struct {
	id        umbel.RunID
	place     int // among the runs, in the order of their starts
	commit    umbel.CommitRequest
	rows      []umbel.StagedRow
	results   []umbel.Result[umbel.Payload]
	resolved  map[int64]bool
	cancelled bool
}

func (r *fakeRun) counts() umbel.Counts {
	c := umbel.Counts{Scheduled: r.commit.Scheduled}
	for _, res := range r.results {
		switch res.Status {
		case umbel.StatusCompleted:
			c.Completed++
		case umbel.StatusFailed:
			c.Failed++
		default:
			c.Cancelled++
		}
	}
	c.Pending = c.Scheduled - c.Resolved()
	return c
}

func (r *fakeRun) status() umbel.Status {
	c := r.counts()
	switch {
	case c.Pending > 0:
		return umbel.StatusRunning
	case r.cancelled:
		return umbel.StatusCancelled
	case c.Completed < c.Scheduled:
		return umbel.StatusFailed
	}
	return umbel.StatusCompleted
}

func (f *fake) enter(ctx context.Context, op string, req any) (after error, err error) {
	f.mu.Lock()
	if f.calls == nil {
		f.calls = map[string]int{}
		f.staged = map[umbel.StagingID]*staging{}
		f.runs = map[string]*fakeRun{}
		f.changed = make(chan struct{})
	}
	f.calls[op]++
	n := f.calls[op]
	if !f.forget {
		f.requests = append(f.requests, req)
	}
	f.mu.Unlock()
	if f.fault != nil {
		if before, lost := f.fault(op, n); before != nil || lost != nil {
			return lost, before
		}
	}
	if ctx.Err() != nil {
		return nil, &umbel.Error{Code: umbel.CodeUnavailable, Op: op, Err: ctx.Err()}
	}
	return nil, nil
}

func (f *fake) notify() { close(f.changed); f.changed = make(chan struct{}) }

func (f *fake) Begin(ctx context.Context, req umbel.BeginRequest) (umbel.BeginReply, error) {
	after, err := f.enter(ctx, "Begin", req)
	if err != nil {
		return umbel.BeginReply{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.runs[key(req.Namespace, req.WorkflowID)]; r != nil {
		return umbel.BeginReply{Exists: true, RunID: r.id, Digest: r.commit.Digest}, after
	}
	return umbel.BeginReply{StagingID: umbel.NewRunID()}, after
}

func (f *fake) Stage(ctx context.Context, req umbel.StageRequest) (umbel.StageReply, error) {
	after, err := f.enter(ctx, "Stage", req)
	if err != nil {
		return umbel.StageReply{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.staged[req.StagingID]
	if s == nil {
		s = &staging{}
		f.staged[req.StagingID] = s
	}
	rows := req.Rows
	if f.partial && len(rows) > 1 {
		rows = rows[:len(rows)/2]
	}
	switch {
	case req.Offset > s.n:
		return umbel.StageReply{}, &umbel.Error{Code: umbel.CodeStagingLost, Op: "stage", NotApplied: true}
	case req.Offset == s.n:
		s.n += int64(len(rows))
		if !f.forget {
			s.rows = append(s.rows, rows...)
		}
	}
	if after != nil {
		return umbel.StageReply{}, after
	}
	return umbel.StageReply{Next: s.n}, nil
}

func (f *fake) Commit(ctx context.Context, req umbel.CommitRequest) (umbel.CommitReply, error) {
	after, err := f.enter(ctx, "Commit", req)
	if err != nil {
		return umbel.CommitReply{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	k := key(req.Namespace, req.WorkflowID)
	if r := f.runs[k]; r != nil {
		if req.OnExisting == umbel.Reject || req.OnExisting == umbel.SameInputs && r.commit.Digest != req.Digest {
			return umbel.CommitReply{}, &umbel.Error{
				Code: umbel.CodeAlreadyExists, Op: "start", WorkflowID: req.WorkflowID, RunID: r.id, NotApplied: true,
			}
		}
		return umbel.CommitReply{RunID: r.id, Scheduled: r.commit.Scheduled, Attached: true}, after
	}
	r := &fakeRun{id: req.StagingID, place: len(f.runs), commit: req, resolved: map[int64]bool{}}
	n := int64(len(req.Rows))
	if s := f.staged[req.StagingID]; s != nil {
		r.rows, n = s.rows, n+s.n
	}
	if n != req.Scheduled {
		return umbel.CommitReply{}, &umbel.Error{Code: umbel.CodeStagingLost, Op: "start", NotApplied: true}
	}
	delete(f.staged, req.StagingID)
	r.rows = append(r.rows, req.Rows...)
	f.runs[k] = r
	if f.handle != nil {
		for i, row := range r.rows {
			r.resolve(int64(i), row, f.handle)
		}
	}
	if after != nil {
		return umbel.CommitReply{}, after
	}
	return umbel.CommitReply{RunID: r.id, Scheduled: n}, nil
}

func (r *fakeRun) resolve(o int64, row umbel.StagedRow, fn func(int64, umbel.StagedRow) (umbel.Payload, error)) {
	if r.resolved[o] {
		return
	}
	r.resolved[o] = true
	res := umbel.Result[umbel.Payload]{
		Row: umbel.Row{Ordinal: o, Key: row.Key, Type: row.Type, Attempt: 1, Input: row.Input}, Status: umbel.StatusCompleted,
	}
	v, err := fn(o, row)
	switch {
	case errors.Is(err, umbel.ErrCancelled):
		res.Status, res.Err = umbel.StatusCancelled, err
	case err != nil:
		res.Status, res.Attempt, res.Err = umbel.StatusFailed, 10, umbel.NewFailure(err, 10)
	default:
		res.Value = v
	}
	r.results = append(r.results, res)
	res.Cursor = umbel.Cursor(fmt.Sprintf("%s/%d", r.id, len(r.results)))
	r.results[len(r.results)-1] = res
}

func (f *fake) Discard(ctx context.Context, req umbel.DiscardRequest) error {
	after, err := f.enter(ctx, "Discard", req)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.staged, req.StagingID)
	return after
}

func (f *fake) Cancel(ctx context.Context, req umbel.CancelRequest) (umbel.CancelReply, error) {
	after, err := f.enter(ctx, "Cancel", req)
	if err != nil {
		return umbel.CancelReply{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.find(req.Namespace, req.WorkflowID, req.RunID)
	if err != nil {
		return umbel.CancelReply{}, err
	}
	ordinals := req.Ordinals
	if len(ordinals) == 0 {
		r.cancelled = true
		for i := range r.rows {
			ordinals = append(ordinals, int64(i))
		}
	}
	before := len(r.results)
	for _, o := range ordinals {
		r.resolve(o, r.rows[o], func(int64, umbel.StagedRow) (umbel.Payload, error) {
			return umbel.Payload{}, fmt.Errorf("%s: %w", req.Reason, umbel.ErrCancelled)
		})
	}
	f.notify()
	return umbel.CancelReply{RunID: r.id, Cancelled: int64(len(r.results) - before)}, after
}
