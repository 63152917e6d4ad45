package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/lua"
)

// exactly as a staged row's delay makes its NotBefore the instant, even one that has passed.
const exactly = time.Duration(math.MinInt64)

// Append implements [Store].
func (o *Redis) Append(ctx context.Context, rows []Row) error {
	type workflow struct {
		namespace string
		id        umbel.WorkflowID
	}
	byWorkflow := map[workflow][]Row{}
	var order []workflow
	for _, r := range rows {
		r = r.WithDefaults()
		if err := validateRow(r); err != nil {
			return err
		}
		w := workflow{r.Namespace, r.WorkflowID}
		if byWorkflow[w] == nil {
			order = append(order, w)
		}
		byWorkflow[w] = append(byWorkflow[w], r)
	}
	for _, w := range order {
		if err := o.appendRows(ctx, w.namespace, w.id, byWorkflow[w]); err != nil {
			return err
		}
	}
	return nil
}

func validateRow(r Row) error {
	if err := r.Key().validate(); err != nil {
		return err
	}
	if err := umbel.ValidateLabel("run ID", string(r.RunID)); err != nil {
		return err
	}
	if !r.VisibleAfter.IsZero() && r.VisibleAfter.UnixMilli() <= 0 {
		return umbel.Invalid("visible_after", r.VisibleAfter.Format(time.RFC3339), "must be after 1970")
	}
	if r.Status != Pending || r.Attempt != 0 || !r.ClaimedAt.IsZero() {
		return umbel.Invalid("status", string(r.Status), "must be pending: a new row has attempt 0 and no claim")
	}
	s := r.staged()
	s.Delay = 0 // it is none
	return s.Validate()
}

// staged is the row as it is staged.
func (r Row) staged() umbel.StagedRow {
	s := umbel.StagedRow{Type: r.ActivityType, TaskQueue: r.TaskQueue, Node: r.Node, Input: r.Input}
	if !r.VisibleAfter.IsZero() {
		s.Delay, s.NotBefore = exactly, r.VisibleAfter
	}
	return s
}

// appendRows adds rows of one workflow behind those that it has.
func (o *Redis) appendRows(ctx context.Context, namespace string, id umbel.WorkflowID, rows []Row) error {
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	for {
		n, err := o.Rows(ctx, namespace, id, rows[0].RunID)
		if err != nil {
			return err
		}
		var staged []umbel.StagedRow
		for _, r := range rows {
			switch at := n + int64(len(staged)); {
			case r.RunID != rows[0].RunID:
				return umbel.Invalid("run ID", string(r.RunID), "differs between rows of one workflow")
			case r.Ordinal < at:
				continue
			case r.Ordinal > at:
				return &umbel.Error{
					Code: umbel.CodeGap, Op: "append", WorkflowID: id, Field: "ordinal", Value: strconv.FormatInt(r.Ordinal, 10),
					Reason: fmt.Sprintf("leaves a gap: the next is %d", at), NotApplied: true,
				}
			}
			staged = append(staged, r.staged())
		}
		if len(staged) == 0 {
			return nil
		}
		d := Dispatch{Namespace: namespace, WorkflowID: id, RunID: rows[0].RunID, Base: n, Rows: staged}
		_, err = o.Dispatch(ctx, d)
		if !errors.Is(err, errMoved) {
			return err
		}
	}
}

// Rows returns how many rows a run has, 0 if there is no such run. It is ErrConflict if the run is another workflow's.
func (o *Redis) Rows(ctx context.Context, namespace string, id umbel.WorkflowID, run umbel.RunID) (int64, error) {
	key := o.Shard(namespace, id).Run(string(RunOr(namespace, id, run))).Record()
	var vals []any
	err := o.scripts.Retry(ctx, func() (err error) {
		vals, err = o.rdb.HMGet(ctx, key, "n", "ns", "wf").Result()
		return err
	})
	if err != nil || vals[0] == nil {
		return 0, o.fail("read run", err)
	}
	text := func(i int) string { s, _ := vals[i].(string); return s }
	if text(1) != namespace || text(2) != string(id) {
		return 0, runTaken("read run", id, run)
	}
	n, err := strconv.ParseInt(text(0), 10, 64)
	if err != nil {
		return 0, o.broken("read run", id, run, fmt.Errorf("field n is %q", text(0)))
	}
	return n, nil
}

// runTaken is the error for a run ID that another workflow has given: its rows would become that one's.
func runTaken(op string, id umbel.WorkflowID, run umbel.RunID) error {
	return &umbel.Error{
		Code: umbel.CodeConflict, Op: op, WorkflowID: id, RunID: run, NotApplied: true,
		Reason: "the run ID is another workflow's: choose one that no other has, or none",
	}
}

// Dispatch is rows that are added at the end of a run which is written from outside.
type Dispatch struct {
	Namespace  string
	WorkflowID umbel.WorkflowID
	RunID      umbel.RunID // empty: the implicit run
	Base       int64       // the run's rows before
	Rows       []umbel.StagedRow
	Events     bool // history records them too
	Fence      lua.Fence
}

// errMoved says that the run has rows that the caller did not know.
var errMoved = errors.New("run has grown")

// Dispatch adds rows, and their events if asked to: all of them or none. It returns the history's head.
func (o *Redis) Dispatch(ctx context.Context, d Dispatch) (int64, error) {
	id := RunOr(d.Namespace, d.WorkflowID, d.RunID)
	sh := o.Shard(d.Namespace, d.WorkflowID)
	if d.Base+int64(len(d.Rows)) > umbel.MaxRows {
		return 0, umbel.Limit("run", d.Base+int64(len(d.Rows)), "rows of a run", umbel.MaxRows)
	}
	st := Staging{Namespace: d.Namespace, WorkflowID: d.WorkflowID, ID: umbel.NewRunID(), Base: d.Base}
	names, err := o.stageDispatch(ctx, st, id, d.Rows)
	if err != nil {
		return 0, err
	}
	staged, run, wf := sh.Run(string(st.ID)), sh.Run(string(id)), sh.Workflow(d.Namespace, string(d.WorkflowID))
	p := lua.Dispatch{
		Staged: staged.Record(), StagedInputs: staged.Inputs(), Run: run.Record(), Inputs: run.Inputs(),
		Workflow: wf.Record, History: wf.History, Ready: sh.Ready(), Backlog: sh.Backlog(), Runs: sh.Runs(d.Namespace),
		ID: string(id), Namespace: d.Namespace, WorkflowID: string(d.WorkflowID), Base: d.Base, Count: len(d.Rows),
		Fence: d.Fence, Events: d.Events, Wake: o.Wake(sh.Index), MaxSeq: maxSequence,
		MaxBytes: umbel.MaxRunInputBytes,
	}
	for i, rk := range routeKeys(sh, run, names) {
		p.Routes = append(p.Routes, lua.DispatchRoute{Staged: staged.Due(i), RouteKeys: rk})
	}
	r, err := o.scripts.Dispatch(ctx, p)
	if err == nil {
		err = d.outcome(r)
	}
	o.runs.drop(id)
	o.views.drop(st.ID)
	if err != nil {
		// nothing of it is visible; what was staged is gone now, or expires
		_ = o.Discard(context.WithoutCancel(ctx), st)
		return 0, o.fail("dispatch", err)
	}
	return r.Number, nil
}

// stageDispatch stages rows in the run's own chunks and with its table of routes, as many bytes as it may still have.
func (o *Redis) stageDispatch(ctx context.Context, st Staging, id umbel.RunID, rows []umbel.StagedRow) ([]string, error) {
	run, err := o.reload(ctx, o.Shard(st.Namespace, st.WorkflowID).Index, id)
	if err != nil {
		return nil, err
	}
	if run != nil {
		if st.taken, err = o.inputBytes(ctx, run); err != nil {
			return nil, err
		}
	}
	if run != nil && len(run.Names) > 0 {
		view := lua.View{ChunkRows: int(run.ChunkRows), ContentType: run.ContentType, RouteCount: len(run.Names)}
		for i, n := range run.Names {
			if i > 0 {
				view.Routes += "\n"
			}
			view.Routes += n
		}
		o.views.put(st.ID, view)
	}
	offset := st.Base
	for len(rows) > 0 {
		n, bytes := 0, 0
		for n < len(rows) && n < umbel.MaxStageRows && (n == 0 || bytes+len(rows[n].Input.Data) <= umbel.MaxStageBytes) {
			bytes += len(rows[n].Input.Data)
			n++
		}
		if offset, err = o.Stage(ctx, st, offset, rows[:n]); err != nil {
			_ = o.Discard(context.WithoutCancel(ctx), st) // or it expires
			return nil, err
		}
		rows = rows[n:]
	}
	v := o.views.get(st.ID)
	_, names, err := parseRoutes(v.Routes)
	return names, err
}

// inputBytes reads how many bytes the inputs of a run have.
func (o *Redis) inputBytes(ctx context.Context, run *Run) (int64, error) {
	var n int64
	err := o.scripts.Retry(ctx, func() (err error) {
		n, err = o.rdb.HGet(ctx, run.Keys.Record(), "bytes").Int64()
		if errors.Is(err, redis.Nil) {
			return nil
		}
		return err
	})
	return n, o.fail("read run", err)
}

// outcome is the error that a reply stands for.
func (d Dispatch) outcome(r lua.DispatchReply) error {
	e := &umbel.Error{Op: "dispatch", WorkflowID: d.WorkflowID, RunID: d.RunID, NotApplied: true}
	switch r.Outcome {
	case "ok":
		return nil
	case "fenced":
		e.Code, e.Reason = umbel.CodeFenced, "another writer has taken the write token"
	case "conflict":
		e.Code, e.Reason = umbel.CodeConflict, fmt.Sprintf("the head is %d, not %d", r.Number, d.Fence.Head)
	case "moved":
		if d.Fence.Token == "" {
			return errMoved
		}
		e.Code, e.Reason = umbel.CodeConflict, fmt.Sprintf("the run has %d rows, not %d", r.Number, d.Base)
	case "run":
		e.Code, e.RunID, e.Reason = umbel.CodeConflict, umbel.RunID(r.Text), "the workflow's current run is another"
	case "taken":
		return runTaken("dispatch", d.WorkflowID, d.RunID)
	case "closed":
		e.Code, e.Reason = umbel.CodeConflict, "the run takes no rows any more: it is "+r.Text+" or served by a server"
	case "limit":
		return tooManyBytes("dispatch", d.WorkflowID, d.RunID, r.Number)
	case "full":
		e.Code, e.Field, e.Value = umbel.CodeLimit, "history", strconv.FormatInt(r.Number, 10)
		e.Reason = "can count no further: start another workflow"
	default:
		e.Code, e.Reason = umbel.CodeStagingLost, "what was staged has expired; dispatch again"
	}
	return e
}
