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
	if attempt < 0 || attempt >= umbel.MaxAttempts { // else the next attempt, whose outcome is refused, would never end
		return umbel.Invalid("attempt", strconv.Itoa(attempt), "must be from 0 to "+strconv.Itoa(umbel.MaxAttempts-1))
	}
	due, err := dueAt(visible)
	if err != nil {
		return err
	}
	return o.change(ctx, "retry", k, lua.Requeue, lua.Item{Due: due, Tries: strconv.Itoa(attempt)})
}

// lastYear is the last that RFC 3339 can write; its instants are exact in a double.
const lastYear = 9999

// dueAt is an instant as scripts want it: 0 for now.
func dueAt(visible time.Time) (int64, error) {
	if visible.IsZero() {
		return 0, nil
	}
	if visible.UnixMilli() <= 0 || visible.Year() > lastYear {
		return 0, umbel.Invalid("visible_after", visible.UTC().Format(time.RFC3339), "must be from the year 1970 to 9999")
	}
	return CeilMilli(visible).UnixMilli(), nil
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
