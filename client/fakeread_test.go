package client_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel"
)

// The fake's reading side.

func (f *fake) find(ns string, w umbel.WorkflowID, id umbel.RunID) (*fakeRun, error) {
	r := f.runs[key(ns, w)]
	if r == nil || id != "" && id != r.id {
		return nil, &umbel.Error{Code: umbel.CodeNotFound, WorkflowID: w, RunID: id, NotApplied: true}
	}
	return r, nil
}

// await calls ready under the lock until it is true or wait is over.
func (f *fake) await(ctx context.Context, wait time.Duration, ready func() bool) error {
	t := time.NewTimer(wait)
	defer t.Stop()
	for {
		f.mu.Lock()
		ok, changed := ready(), f.changed
		f.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-t.C:
			return nil
		case <-ctx.Done():
			return &umbel.Error{Code: umbel.CodeUnavailable, Err: ctx.Err()}
		}
	}
}

func (f *fake) Describe(ctx context.Context, req umbel.DescribeRequest) (rep umbel.DescribeReply, err error) {
	after, err := f.enter(ctx, "Describe", req)
	if err != nil {
		return rep, err
	}
	var missing error
	err = f.await(ctx, req.Wait, func() bool {
		r, e := f.find(req.Namespace, req.WorkflowID, req.RunID)
		if missing = e; e != nil {
			return true
		}
		rep.RunInfo = r.info()
		return rep.Status != umbel.StatusRunning
	})
	return rep, firstOf(missing, err, after)
}

func (f *fake) Results(ctx context.Context, req umbel.ResultsRequest) (rep umbel.ResultsReply, err error) {
	after, err := f.enter(ctx, "Results", req)
	if err != nil {
		return rep, err
	}
	var refused error
	err = f.await(ctx, req.Wait, func() bool {
		r, e := f.find(req.Namespace, req.WorkflowID, req.RunID)
		if refused = e; e != nil {
			return true
		}
		page, end := r.results, len(r.results)
		at, place := 0, "%s/%d"
		if req.Ordered {
			place = "%s/o%d"
			page = slices.SortedFunc(slices.Values(page), func(a, b umbel.Result[umbel.Payload]) int {
				return cmp.Compare(a.Ordinal, b.Ordinal)
			})
			for end = 0; end < len(page) && page[end].Ordinal == int64(end); end++ {
				page[end].Cursor = umbel.Cursor(fmt.Sprintf(place, r.id, end+1))
			}
		}
		if req.Cursor != "" {
			if _, err := fmt.Sscanf(strings.TrimPrefix(string(req.Cursor), string(r.id)), strings.TrimPrefix(place, "%s"), &at); err != nil {
				refused = umbel.Invalid("cursor", string(req.Cursor), "is of another order")
				return true
			}
		}
		if at > end {
			refused = &umbel.Error{Code: umbel.CodeCursorLost, NotApplied: true}
			return true
		}
		all := end
		if f.page > 0 {
			end = min(end, at+f.page)
		}
		rep = umbel.ResultsReply{RunID: r.id, Next: umbel.Cursor(fmt.Sprintf(place, r.id, end))}
		for _, res := range page[at:end] {
			if !req.WithInputs {
				res.Input = umbel.Payload{}
			}
			if req.Status == "" || req.Status == res.Status {
				rep.Results = append(rep.Results, res)
			}
		}
		rep.Done = end == all && r.status() != umbel.StatusRunning
		return end > at || rep.Done // a page that the status leaves empty advances
	})
	return rep, firstOf(refused, err, after)
}

// events is the run's history.
func (r *fakeRun) events() []umbel.Event {
	evs := []umbel.Event{{Type: umbel.WorkflowStarted, RunID: r.id, Scheduled: r.commit.Scheduled}}
	for i, row := range r.rows {
		about := umbel.Row{Ordinal: int64(i), Key: row.Key, Type: row.Type}
		evs = append(evs, umbel.Event{Type: umbel.ActivityScheduled, Row: about}, umbel.Event{Type: umbel.ActivityStarted, Row: about})
	}
	for _, res := range r.results {
		ev := umbel.Event{Row: res.Row, Result: res.Value}
		switch res.Status {
		case umbel.StatusCompleted:
			ev.Type = umbel.ActivityCompleted
		case umbel.StatusFailed:
			ev.Type = umbel.ActivityFailed
		default:
			ev.Type = umbel.ActivityCancelled
		}
		evs = append(evs, ev)
	}
	if s := r.status(); s != umbel.StatusRunning {
		evs = append(evs, umbel.Event{Type: umbel.FanOutDecided, Status: s}, umbel.Event{Type: umbel.WorkflowClosed, Status: s})
	}
	for i := range evs {
		evs[i].Seq = int64(i) + 1
	}
	return evs
}

func (f *fake) History(ctx context.Context, req umbel.HistoryRequest) (rep umbel.HistoryReply, err error) {
	after, err := f.enter(ctx, "History", req)
	if err != nil {
		return rep, err
	}
	var missing error
	err = f.await(ctx, req.Wait, func() bool {
		r, e := f.find(req.Namespace, req.WorkflowID, req.RunID)
		if missing = e; e != nil {
			return true
		}
		evs := r.events()
		rep.Head = int64(len(evs))
		rep.Events = evs[min(max(req.From, 1)-1, rep.Head):]
		if f.page > 0 {
			rep.Events = rep.Events[:min(len(rep.Events), f.page)]
		}
		return len(rep.Events) > 0 || r.status() != umbel.StatusRunning
	})
	return rep, firstOf(missing, err, after)
}

// List looks at a page of runs and returns those that match.
func (f *fake) List(ctx context.Context, req umbel.ListRequest) (rep umbel.ListReply, err error) {
	after, err := f.enter(ctx, "List", req)
	if err != nil {
		return rep, err
	}
	if req.Limit < 0 || req.Limit > umbel.MaxListItems {
		return rep, umbel.Invalid("limit", fmt.Sprint(req.Limit), "is out of range")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	runs := make([]*fakeRun, len(f.runs))
	for _, r := range f.runs {
		runs[len(runs)-1-r.place] = r
	}
	at := 0
	if req.Cursor != "" {
		if _, err := fmt.Sscan(string(req.Cursor), &at); err != nil {
			return rep, umbel.Invalid("cursor", string(req.Cursor), "is none")
		}
	}
	end := len(runs)
	if f.page > 0 {
		end = min(end, at+f.page)
	}
	for i, r := range runs[at:end] {
		matches := r.commit.Namespace == req.Namespace && strings.HasPrefix(string(r.commit.WorkflowID), req.Prefix) &&
			(req.Status == "" || req.Status == r.status()) && (req.Type == "" || slices.Contains(r.types(), req.Type))
		if !matches {
			continue
		}
		rep.Runs = append(rep.Runs, r.info())
		if len(rep.Runs) == req.Limit {
			end = at + i + 1
			break
		}
	}
	rep.Next, rep.Done = umbel.Cursor(fmt.Sprint(end)), end == len(runs)
	return rep, after
}

func (r *fakeRun) types() []string {
	var ts []string
	for _, row := range r.rows {
		if !slices.Contains(ts, row.Type) {
			ts = append(ts, row.Type)
		}
	}
	return ts
}

func (r *fakeRun) info() umbel.RunInfo {
	return umbel.RunInfo{WorkflowID: r.commit.WorkflowID, RunID: r.id, Status: r.status(), Types: r.types(), Counts: r.counts()}
}
