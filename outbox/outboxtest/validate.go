package outboxtest

import (
	"cmp"
	"context"
	"strconv"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/outbox"
)

// check refuses a call whose context has ended, then one that is invalid.
func check(ctx context.Context, validate func() error) error {
	if ctx.Err() != nil {
		return &umbel.Error{Code: umbel.CodeUnavailable, NotApplied: true, Err: context.Cause(ctx)}
	}
	return validate()
}

func validateRows(rows []outbox.Row) error {
	for _, r := range rows {
		if err := cmp.Or(
			validateKey(r.Key()),
			umbel.ValidateLabel("run ID", string(r.RunID)),
			umbel.ValidateLabel("task queue", r.TaskQueue),
			umbel.ValidateLabel("node", r.Node),
			umbel.ValidateName("activity type", r.ActivityType),
			r.Input.Validate("input"),
			validateAttempt(r.Attempt),
		); err != nil {
			return err
		}
		if r.Status != "" && r.Status != outbox.Pending {
			return umbel.Invalid("status", string(r.Status), "must be pending")
		}
	}
	return nil
}

func validateKeysOf(rows []outbox.Row) error {
	for _, r := range rows {
		if err := validateKey(r.Key()); err != nil {
			return err
		}
	}
	return nil
}

func validateKey(key outbox.Key) error {
	if key.Ordinal < 0 || key.Ordinal > umbel.MaxOrdinal {
		return umbel.Invalid("ordinal", strconv.FormatInt(key.Ordinal, 10), "must be from 0 to below 2^24")
	}
	return cmp.Or(
		umbel.ValidateLabel("namespace", key.Namespace),
		umbel.ValidateName("workflow ID", string(key.WorkflowID)),
	)
}

func validateAttempt(attempt int) error {
	if attempt < 0 || attempt >= umbel.MaxAttempts { // there is a next one
		return umbel.Invalid("attempt", strconv.Itoa(attempt), "must be from 0 to "+strconv.Itoa(umbel.MaxAttempts-1))
	}
	return nil
}

func validateLimit(limit int) error {
	if limit < 1 {
		return umbel.Invalid("limit", strconv.Itoa(limit), "must be at least 1")
	}
	return nil
}
