package outbox

import (
	"context"
	"strconv"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/lua"
)

// Complete implements [Store].
func (o *Redis) Complete(ctx context.Context, k Key) error {
	return o.change(ctx, "complete", k, lua.Complete, lua.Item{})
}

// Fail implements [Store].
func (o *Redis) Fail(ctx context.Context, k Key) error {
	return o.change(ctx, "fail", k, lua.Fail, lua.Item{})
}

// Cancel implements [Store].
func (o *Redis) Cancel(ctx context.Context, k Key) error {
	return o.change(ctx, "cancel", k, lua.CancelIt, lua.Item{})
}

// Retry implements [Store].
func (o *Redis) Retry(ctx context.Context, k Key, attempt int, visible time.Time) error {
	if attempt < 0 || attempt > umbel.MaxAttempts {
		return umbel.Invalid("attempt", strconv.Itoa(attempt), "must be from 0 to "+strconv.Itoa(umbel.MaxAttempts))
	}
	due, err := dueAt(visible)
	if err != nil {
		return err
	}
	return o.change(ctx, "retry", k, lua.Requeue, lua.Item{Due: due, Tries: strconv.Itoa(attempt)})
}

// dueAt is an instant as scripts want it: 0 for now.
func dueAt(visible time.Time) (int64, error) {
	if visible.IsZero() {
		return 0, nil
	}
	ms := CeilMilli(visible).UnixMilli()
	if ms <= 0 {
		return 0, umbel.Invalid("visible_after", visible.Format(time.RFC3339), "must be after 1970")
	}
	return ms, nil
}

// Rearm implements [Store].
func (o *Redis) Rearm(ctx context.Context, rows []Row) error {
	for _, r := range rows {
		if err := r.Key().validate(); err != nil {
			return err
		}
		if _, err := dueAt(r.VisibleAfter); err != nil {
			return err
		}
	}
	for _, r := range rows {
		run, err := o.lookup(ctx, r.Key())
		if err != nil {
			return err
		}
		if run == nil || r.RunID != "" && r.RunID != run.ID {
			continue
		}
		due, _ := dueAt(r.VisibleAfter)
		if err := o.change(ctx, "rearm", r.Key(), lua.Requeue, lua.Item{Due: due}); err != nil {
			return err
		}
	}
	return nil
}
