package client

import (
	"cmp"
	"context"
	"iter"
	"time"

	"github.com/umbelhq/umbel"
)

// DefaultActivity is the activity type that [Admin.Start] hands items to if none is named.
const DefaultActivity = "default"

// Admin is what a person or a tool does in one namespace, with any workflow and without its types: payloads are
// bytes. The command umbel is made of it. Like a [Client] it repeats calls while the server is unavailable, holds
// no connection and no goroutine of its own, and is safe for concurrent use.
//
// A method that takes a run's ID means the workflow's current run if that is empty. An ID that cannot be one is
// [umbel.ErrInvalid], a workflow or run that is not there [umbel.ErrNotFound]. When ctx ends a call returns
// [umbel.ErrUnavailable] wrapping ctx's error. A sequence yields its error once and last, beside a zero value;
// break out of it at any time, and range again to begin anew.
type Admin struct{ c *Client }

// NewAdmin returns an Admin that works through e. It makes no call. Its errors are those of [New].
func NewAdmin(e Engine, cfg Config) (*Admin, error) {
	c, err := New(e, cfg)
	if err != nil {
		return nil, err
	}
	return &Admin{c: c}, nil
}

func (a *Admin) handle(id umbel.WorkflowID, run umbel.RunID) *handle {
	return &handle{c: a.c, id: id, runID: run}
}

// StartSpec says how [Admin.Start] starts a fan-out. The zero StartSpec is ready to use.
type StartSpec struct {
	// WorkflowID is as the option [WorkflowID] says. Empty: a random one.
	WorkflowID umbel.WorkflowID
	// Activity is the activity type of every item. Default [DefaultActivity].
	Activity string
	// TaskQueue selects the pool of workers. Default [umbel.DefaultTaskQueue].
	TaskQueue string
	// Node pins the items to workers that advertise it. Empty: any worker of the pool.
	Node string
	// MaxAttempts is how often an item is tried in all, up to [umbel.MaxAttempts]. 0: as [umbel.DefaultRetry].
	MaxAttempts int
	// Timeout bounds one attempt, in whole milliseconds up to [umbel.MaxDelay]. 0: no bound.
	Timeout time.Duration
	// Delay keeps the items back for so long after the start, in the same range.
	Delay time.Duration
	// OnExisting says what to do when the workflow has a run already. Default [SameInputs].
	OnExisting OnExisting
}

func (s StartSpec) options() []StartOption {
	opts := []StartOption{
		TaskQueue(s.TaskQueue), Node(s.Node), StartToClose(s.Timeout), StartAfter(s.Delay), s.OnExisting,
	}
	if s.WorkflowID != "" {
		opts = append(opts, WorkflowID(s.WorkflowID))
	}
	if s.MaxAttempts != 0 {
		opts = append(opts, Retry(umbel.RetryPolicy{MaxAttempts: s.MaxAttempts}))
	}
	return opts
}

// Start hands every item to an activity and returns the run, not waiting for results. Items are read once, in the
// calling goroutine, and an error among them fails the start, wrapped. Everything else is as for [FanOut], the
// errors too: a run that was started with the same items and options by any client is attached to.
func (a *Admin) Start(
	ctx context.Context, spec StartSpec, items iter.Seq2[umbel.Payload, error],
) (*Run[umbel.Payload], error) {
	activity := umbel.Define[umbel.Payload, umbel.Payload](cmp.Or(spec.Activity, DefaultActivity))
	inputs := TryMap(items, func(p umbel.Payload) umbel.Item[umbel.Payload] { return umbel.Item[umbel.Payload]{Input: p} })
	run, err := FanOutItems(ctx, a.c, activity, inputs, spec.options()...)
	if err != nil {
		return nil, err
	}
	run.decode = rawOutput // a run that was attached to may be of other activities
	return run, nil
}

// Show returns how a run stands now.
func (a *Admin) Show(ctx context.Context, id umbel.WorkflowID, run umbel.RunID) (umbel.RunInfo, error) {
	d, err := a.handle(id, run).describe(ctx, "show", run, 0)
	return d.RunInfo, err
}

// Watch yields how a run stands, as [Run.Watch] does.
func (a *Admin) Watch(ctx context.Context, id umbel.WorkflowID, run umbel.RunID) iter.Seq2[umbel.RunInfo, error] {
	return a.handle(id, run).watch(ctx)
}

// ResultsQuery says which results [Admin.Results] yields. The zero ResultsQuery asks for all there are now.
type ResultsQuery struct {
	// Run is the run. Empty: that of From, or the workflow's current one.
	Run umbel.RunID
	// Ordered yields by ordinal, see [Ordered].
	Ordered bool
	// Status is that of the results: completed, failed or cancelled. Empty: any.
	Status umbel.Status
	// Follow waits for the rows that are still open, until the run is closed.
	Follow bool
	// From goes on after the result that carried the cursor, see [From]. Empty: from the start.
	From umbel.Cursor
	// WithInputs sets Row.Input of every result.
	WithInputs bool
}

// Results yields results of a run, each ordinal once. Without Follow it ends at what was there when reading began,
// or a little later. Otherwise it is as [Run.Results], errors and lost cursors included.
func (a *Admin) Results(
	ctx context.Context, id umbel.WorkflowID, q ResultsQuery,
) iter.Seq2[umbel.Result[umbel.Payload], error] {
	return a.handle(id, q.Run).results(ctx, q.Run, resultConfig{
		from: q.From, withInputs: q.WithInputs, ordered: q.Ordered, status: q.Status, present: !q.Follow,
	})
}

// Cancel is [Run.Cancel]. It returns how many rows it cancelled, which are fewer than were asked for where some
// were resolved before, or where a reply was lost and the call repeated. With an error it counts the calls before.
func (a *Admin) Cancel(
	ctx context.Context, id umbel.WorkflowID, run umbel.RunID, reason string, ordinals ...int64,
) (int64, error) {
	return a.handle(id, run).cancel(ctx, reason, ordinals)
}
