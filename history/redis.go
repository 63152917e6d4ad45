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
	if len(events) > umbel.MaxPageItems {
		return 0, umbel.Limit("append", int64(len(events)), "events of a call", umbel.MaxPageItems)
	}
	var b []byte
	for _, e := range events {
		if e.Type.Terminal() {
			return 0, umbel.Invalid("event type", string(e.Type), "must be written by Complete, which resolves the row")
		}
		if err := cmp.Or(e.Input.Validate("input"), e.Result.Validate("result")); err != nil {
			return 0, err
		}
		if e.Type == umbel.ActivityAttemptFailed {
			b = append(b, encodePreamble(e.Worker, e.ClaimedAt)...)
		}
		if b, err = encodeEvent(b, e); err != nil {
			return 0, err
		}
	}
	if len(events) == 0 {
		return at.Head, nil
	}
	if len(events) > 1 && len(b) > umbel.MaxStageBytes {
		return 0, umbel.Limit("append", int64(len(b)), "bytes of the events of a call", umbel.MaxStageBytes)
	}
	if at.Token == "" { // to a script that is no fence at all
		return 0, positionError("append", wf, at, "fenced", 0)
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
	if at.Token == "" {
		return 0, positionError("dispatch", wf, at, "fenced", 0)
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

var closings = lua.Closings{
	Completed: closing(umbel.StatusCompleted), Failed: closing(umbel.StatusFailed), Cancelled: closing(umbel.StatusCancelled),
}
