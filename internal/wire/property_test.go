package wire_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/umbelhq/umbel"
)

// Any value of the seam arrives as it was sent.
func TestAnyValueArrives(t *testing.T) {
	t.Parallel()
	for _, s := range samples() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				if d := s.random(t); d != "" {
					t.Fatalf("-sent +arrived:\n%s", d)
				}
			})
		})
	}
}

// anyOf draws values of a type, within what a message can hold.
func anyOf[V any]() *rapid.Generator[V] {
	return rapid.MakeCustom[V](rapid.MakeConfig{Types: map[reflect.Type]*rapid.Generator[any]{
		reflect.TypeFor[int]():               rapid.IntRange(0, 1<<31-1).AsAny(),
		reflect.TypeFor[int64]():             rapid.Int64Range(0, 1<<32-1).AsAny(),
		reflect.TypeFor[time.Duration]():     rapid.Map(rapid.Int64(), func(n int64) time.Duration { return time.Duration(n) }).AsAny(),
		reflect.TypeFor[time.Time]():         instants().AsAny(),
		reflect.TypeFor[*umbel.Failure]():    failures().AsAny(),
		reflect.TypeFor[*umbel.Error]():      problems().AsAny(),
		reflect.TypeFor[error]():             rapid.Map(failures(), func(f *umbel.Failure) error { return f }).AsAny(),
		reflect.TypeFor[umbel.OnExisting]():  enum[umbel.OnExisting](),
		reflect.TypeFor[umbel.Outcome]():     enum[umbel.Outcome](),
		reflect.TypeFor[umbel.HoldState]():   enum[umbel.HoldState](),
		reflect.TypeFor[umbel.VerdictCode](): enum[umbel.VerdictCode](),
	}})
}

func enum[E ~int]() *rapid.Generator[any] {
	return rapid.Map(rapid.IntRange(0, 99), func(n int) E { return E(n) }).AsAny()
}

func instants() *rapid.Generator[time.Time] {
	return rapid.Map(rapid.Int64Range(0, 253402300799_999), func(ms int64) time.Time {
		if ms == 0 {
			return time.Time{}
		}
		return time.UnixMilli(ms).UTC()
	})
}

func failures() *rapid.Generator[*umbel.Failure] {
	return rapid.Custom(func(t *rapid.T) *umbel.Failure {
		var f *umbel.Failure
		for range rapid.IntRange(0, umbel.MaxErrorCauses+1).Draw(t, "causes") {
			f = &umbel.Failure{
				Type: rapid.String().Draw(t, "type"), Message: rapid.String().Draw(t, "message"), Stack: rapid.String().Draw(t, "stack"),
				Attempt: rapid.IntRange(0, 64).Draw(t, "attempt"), NonRetryable: rapid.Bool().Draw(t, "non-retryable"), Cause: f,
			}
		}
		return f
	})
}

func problems() *rapid.Generator[*umbel.Error] {
	return rapid.Custom(func(t *rapid.T) *umbel.Error {
		var e *umbel.Error
		for range rapid.IntRange(0, 4).Draw(t, "causes") {
			outer := &umbel.Error{
				Code: umbel.Code(rapid.StringN(1, 20, -1).Draw(t, "code")), Op: rapid.String().Draw(t, "op"),
				WorkflowID: umbel.WorkflowID(rapid.String().Draw(t, "workflow")), RunID: umbel.RunID(rapid.String().Draw(t, "run")),
				Field: rapid.String().Draw(t, "field"), Value: rapid.String().Draw(t, "value"), Reason: rapid.String().Draw(t, "reason"),
				NotApplied: rapid.Bool().Draw(t, "not applied"),
			}
			if e != nil {
				outer.Err = e
			} else if text := rapid.String().Draw(t, "cause"); text != "" {
				outer.Err = errors.New(text)
			}
			e = outer
		}
		return e
	})
}

// What follows makes values whole: what their fields say of each other.

func wholePoll(asked umbel.PollRequest) func(*umbel.PollReply) {
	return func(r *umbel.PollReply) {
		for i := range r.Rows {
			c := &r.Rows[i]
			c.Namespace, c.TaskQueue, c.Lease = asked.Namespace, asked.TaskQueue, r.Rows[0].Lease
		}
	}
}

func wholeResults(r *umbel.ResultsReply) {
	for i := range r.Results {
		x := &r.Results[i]
		if f, _ := x.Err.(*umbel.Failure); f != nil { //nolint:errorlint // a result holds the failure itself
			continue
		}
		switch i % 2 {
		case 0:
			x.Status, x.Err = umbel.StatusCompleted, nil
		default:
			x.Status, x.Err = umbel.StatusCancelled, fmt.Errorf("ordinal %d: %w", x.Ordinal, umbel.ErrCancelled)
		}
	}
}

func wholeReport(r *umbel.ReportReply) {
	for i := range r.Verdicts {
		if e := r.Verdicts[i].Err; e != nil && e.Code == "" {
			r.Verdicts[i].Err = nil
		}
	}
}

func wholeError(e **umbel.Error) {
	if *e == nil {
		*e = &umbel.Error{Code: umbel.CodeInternal}
	}
}
