package history

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/keys"
	"github.com/umbelhq/umbel/internal/lua"
	"github.com/umbelhq/umbel/outbox"
)

// Redis is the history on Redis, together with everything that changes in the same step as the log. It is safe
// for concurrent use and has no goroutines of its own.
type Redis struct {
	rdb     redis.UniversalClient
	scripts *lua.Scripts
	outbox  *outbox.Redis
}

var _ Store = (*Redis)(nil)

// NewRedis returns the history of the installation that rows opens.
func NewRedis(rows *outbox.Redis) *Redis {
	return &Redis{rdb: rows.Scripts().Redis(), scripts: rows.Scripts(), outbox: rows}
}

// Outbox implements [Store].
func (h *Redis) Outbox() outbox.Store { return h.outbox }

// Rows returns the outbox as what it is on Redis.
func (h *Redis) Rows() *outbox.Redis { return h.outbox }

func (wf Workflow) withDefaults() (Workflow, error) {
	wf.Namespace = cmp.Or(wf.Namespace, umbel.DefaultNamespace)
	err := cmp.Or(
		umbel.ValidateName("namespace", wf.Namespace),
		umbel.ValidateName("workflow ID", string(wf.ID)),
		umbel.ValidateLabel("run ID", string(wf.RunID)),
	)
	return wf, err
}

func (h *Redis) keys(wf Workflow) (keys.Shard, keys.Workflow) {
	sh := h.outbox.Shard(wf.Namespace, wf.ID)
	return sh, sh.Workflow(wf.Namespace, string(wf.ID))
}

// Acquire implements [Store].
func (h *Redis) Acquire(ctx context.Context, wf Workflow) (Position, error) {
	wf, err := wf.withDefaults()
	if err != nil {
		return Position{}, err
	}
	_, k := h.keys(wf)
	token := rand.Text()
	var head *redis.StringCmd
	err = h.scripts.Retry(ctx, func() error {
		_, err := h.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.HSet(ctx, k.Record, "token", token)
			head = p.HGet(ctx, k.Record, "head")
			return nil
		})
		if errors.Is(err, redis.Nil) {
			return nil
		}
		return err
	})
	if err != nil {
		return Position{}, outbox.Failure("acquire", err)
	}
	n, _ := head.Int64() // absent is 0
	return Position{Token: Token(token), Head: n}, nil
}

// Head implements [Store].
func (h *Redis) Head(ctx context.Context, wf Workflow) (int64, error) {
	wf, err := wf.withDefaults()
	if err != nil {
		return 0, err
	}
	_, k := h.keys(wf)
	var n int64
	err = h.scripts.Retry(ctx, func() (err error) {
		n, err = h.rdb.HGet(ctx, k.Record, "head").Int64()
		if errors.Is(err, redis.Nil) {
			return nil
		}
		return err
	})
	return n, outbox.Failure("read head", err)
}

// Append implements [Store].
func (h *Redis) Append(ctx context.Context, wf Workflow, at Position, events []umbel.Event) (int64, error) {
	wf, err := wf.withDefaults()
	if err != nil {
		return 0, err
	}
	var b []byte
	for _, e := range events {
		if e.Worker != "" || !e.ClaimedAt.IsZero() {
			b = append(b, encodePreamble(e.Worker, e.ClaimedAt)...)
		}
		if b, err = encodeEvent(b, e); err != nil {
			return 0, err
		}
	}
	if len(events) == 0 {
		return at.Head, nil
	}
	_, k := h.keys(wf)
	r, err := h.scripts.Append(ctx, lua.Append{
		Workflow: k.Record, History: k.History, Fence: lua.Fence{Token: string(at.Token), Head: at.Head},
		Count: len(events), Events: b, MaxSeq: MaxSeq,
	})
	if err != nil {
		return 0, outbox.Failure("append", err)
	}
	return r.Head, positionError("append", wf, at, r.Outcome, r.Head)
}

// positionError is the error that an outcome of an append stands for.
func positionError(op string, wf Workflow, at Position, outcome string, head int64) error {
	e := &umbel.Error{Op: op, WorkflowID: wf.ID, RunID: wf.RunID, NotApplied: true}
	switch outcome {
	case "ok":
		return nil
	case "fenced":
		e.Code, e.Reason = umbel.CodeFenced, "another writer has taken the write token"
	case "conflict":
		e.Code, e.Reason = umbel.CodeConflict, fmt.Sprintf("the head is %d, not %d", head, at.Head)
	case "full":
		e.Code, e.Field, e.Value = umbel.CodeLimit, "history", strconv.FormatInt(head, 10)
		e.Reason = "can count no further: start another workflow"
	default:
		e.Code, e.Reason = umbel.CodeInternal, "unexpected outcome "+outcome
	}
	return e
}

// Dispatch implements [Store].
func (h *Redis) Dispatch(ctx context.Context, wf Workflow, at Position, items []Item) (int64, error) {
	wf, err := wf.withDefaults()
	if err != nil || len(items) == 0 {
		return at.Head, err
	}
	rows := make([]umbel.StagedRow, len(items))
	for i, it := range items {
		rows[i] = umbel.StagedRow{Type: it.ActivityType, TaskQueue: it.TaskQueue, Node: it.Node, Key: it.Key, Input: it.Input}
		if err := rows[i].Validate(); err != nil {
			return 0, err
		}
	}
	base, err := h.outbox.Rows(ctx, wf.Namespace, wf.ID, wf.RunID)
	if err != nil {
		return 0, err
	}
	return h.outbox.Dispatch(ctx, outbox.Dispatch{
		Namespace: wf.Namespace, WorkflowID: wf.ID, RunID: wf.RunID, Base: base, Rows: rows, Events: true,
		Fence: lua.Fence{Token: string(at.Token), Head: at.Head},
	})
}

// Complete implements [Store].
func (h *Redis) Complete(ctx context.Context, wf Workflow, at Position, c Completion) (Outcome, int64, error) {
	wf, err := wf.withDefaults()
	if err != nil {
		return "", 0, err
	}
	if err := c.validate(); err != nil {
		return "", 0, err
	}
	current, err := h.outbox.Current(ctx, wf.Namespace, wf.ID)
	if err != nil {
		return "", 0, err
	}
	if c.RunID != "" && wf.RunID != "" && c.RunID != wf.RunID || c.RunID != "" && c.RunID != current {
		return h.drop(ctx, wf, at)
	}
	sh, _ := h.keys(wf)
	run, err := h.outbox.Run(ctx, sh.Index, current)
	if err != nil {
		return "", 0, err
	}
	if run == nil {
		return "", 0, unknownOrdinal(wf, c.Ordinal)
	}
	g, err := h.completion(ctx, run, c)
	if err != nil {
		return "", 0, err
	}
	r, err := h.outbox.Settle(ctx, outbox.Settlement{
		Run: run, Fence: lua.Fence{Token: string(at.Token), Head: at.Head}, Closings: closings, Groups: []lua.Group{g},
	})
	if err != nil {
		return "", 0, err
	}
	switch r.Outcome {
	case "ok":
		if len(r.Exceptions) == 0 {
			return Recorded, r.Number, nil
		}
		if r.Exceptions[0].Code == 'n' {
			return "", 0, unknownOrdinal(wf, c.Ordinal)
		}
		return Dropped, r.Number, nil
	case "closed":
		return h.drop(ctx, wf, at)
	case "absent":
		return "", 0, unknownOrdinal(wf, c.Ordinal)
	}
	return "", 0, positionError("complete", wf, at, r.Outcome, r.Number)
}

// drop drops a completion, if the token is still in force.
func (h *Redis) drop(ctx context.Context, wf Workflow, at Position) (Outcome, int64, error) {
	_, k := h.keys(wf)
	var vals []any
	err := h.scripts.Retry(ctx, func() (err error) {
		vals, err = h.rdb.HMGet(ctx, k.Record, "token", "head").Result()
		return err
	})
	if err != nil {
		return "", 0, outbox.Failure("complete", err)
	}
	if token, _ := vals[0].(string); token != string(at.Token) {
		return "", 0, positionError("complete", wf, at, "fenced", 0)
	}
	s, _ := vals[1].(string)
	head, _ := strconv.ParseInt(s, 10, 64) // absent is 0
	return Dropped, head, nil
}

func unknownOrdinal(wf Workflow, ordinal int64) error {
	return &umbel.Error{
		Code: umbel.CodeNotFound, Op: "complete", WorkflowID: wf.ID, RunID: wf.RunID, NotApplied: true,
		Field: "ordinal", Value: strconv.FormatInt(ordinal, 10), Reason: "is no row of the run",
	}
}

func (c Completion) validate() error {
	switch {
	case c.Ordinal < 0 || c.Ordinal >= 1<<24:
		return umbel.Invalid("ordinal", strconv.FormatInt(c.Ordinal, 10), "must be from 0 to 16777215")
	case c.Attempt < 1 || c.Attempt > umbel.MaxAttempts:
		return umbel.Invalid("attempt", strconv.Itoa(c.Attempt), "must be from 1 to "+strconv.Itoa(umbel.MaxAttempts))
	}
	return c.Result.Validate("result")
}

// completion is the group that records c, whoever holds the row.
func (h *Redis) completion(ctx context.Context, run *outbox.Run, c Completion) (lua.Group, error) {
	e := umbel.Event{Type: umbel.ActivityCompleted, Row: umbel.Row{Ordinal: c.Ordinal, Attempt: c.Attempt}, Result: c.Result}
	g := lua.Group{Verb: lua.Complete, Attempt: c.Attempt}
	if c.Failure != nil {
		e.Type, e.Failure, e.Result, g.Verb = umbel.ActivityFailed, c.Failure, umbel.Payload{}, lua.Fail
	}
	b, err := encodeEvent(nil, e)
	if err != nil {
		return g, err
	}
	if len(run.Routes) > 1 {
		if g.Route, err = h.outbox.RouteOf(ctx, run, c.Ordinal); err != nil {
			return g, err
		}
	}
	g.Items = []lua.Item{{Ordinal: c.Ordinal, Event: b}}
	return g, nil
}

var closings = lua.Closings{
	Completed: closing(umbel.StatusCompleted), Failed: closing(umbel.StatusFailed), Cancelled: closing(umbel.StatusCancelled),
}
