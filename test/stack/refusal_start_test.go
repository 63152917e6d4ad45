package stack

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel"
)

const unstarted = "another"

// startRefusals are those of Begin, Stage, Commit and Discard.
func startRefusals() []refusal {
	type ctx = context.Context
	staging := umbel.NewRunID()
	stage := func(c ctx, e umbel.Engine, r umbel.StageRequest) error {
		r.Namespace, r.WorkflowID = ns, unstarted
		if r.StagingID == "" {
			r.StagingID = staging
		}
		_, err := e.Stage(c, r)
		return err
	}
	commit := func(c ctx, e umbel.Engine, r umbel.CommitRequest) error {
		r.Namespace, r.WorkflowID = ns, unstarted
		_, err := e.Commit(c, r)
		return err
	}
	table := slices.Concat(
		names("Begin", "namespace", false, func(c ctx, e umbel.Engine, v string) error {
			_, err := e.Begin(c, umbel.BeginRequest{Namespace: v, WorkflowID: "w"})
			return err
		}),
		names("Begin", "workflow ID", false, func(c ctx, e umbel.Engine, v string) error {
			_, err := e.Begin(c, umbel.BeginRequest{Namespace: ns, WorkflowID: umbel.WorkflowID(v)})
			return err
		}),
		names("Stage", "namespace", false, func(c ctx, e umbel.Engine, v string) error {
			_, err := e.Stage(c, umbel.StageRequest{Namespace: v, WorkflowID: unstarted, StagingID: staging, Rows: rows(1)})
			return err
		}),
		names("Stage", "workflow ID", false, func(c ctx, e umbel.Engine, v string) error {
			_, err := e.Stage(c, umbel.StageRequest{Namespace: ns, WorkflowID: umbel.WorkflowID(v), StagingID: staging, Rows: rows(1)})
			return err
		}),
		names("Commit", "namespace", false, func(c ctx, e umbel.Engine, v string) error {
			_, err := e.Commit(c, umbel.CommitRequest{Namespace: v, WorkflowID: unstarted, Rows: rows(1), Scheduled: 1})
			return err
		}),
		names("Commit", "workflow ID", false, func(c ctx, e umbel.Engine, v string) error {
			_, err := e.Commit(c, umbel.CommitRequest{Namespace: ns, WorkflowID: umbel.WorkflowID(v), Rows: rows(1), Scheduled: 1})
			return err
		}),
		names("Discard", "namespace", false, func(c ctx, e umbel.Engine, v string) error {
			return e.Discard(c, umbel.DiscardRequest{Namespace: v, WorkflowID: "w", StagingID: staging})
		}),
		names("Discard", "workflow ID", false, func(c ctx, e umbel.Engine, v string) error {
			return e.Discard(c, umbel.DiscardRequest{Namespace: ns, WorkflowID: umbel.WorkflowID(v), StagingID: staging})
		}),
	)
	for _, id := range []umbel.StagingID{"x", staging[1:], staging + "a", umbel.StagingID(strings.ToUpper(string(staging))), "../../../../../../../../..", "aaaaaaaaaaaaa:aaaaaaaaaaaa"} {
		table = append(table,
			refusal{"Stage", "staging ID " + string(id), "staging ID", "as Begin returns it", func(c ctx, e umbel.Engine) error {
				return stage(c, e, umbel.StageRequest{StagingID: id, Rows: rows(1)})
			}},
			refusal{"Commit", "staging ID " + string(id), "staging ID", "as Begin returns it", func(c ctx, e umbel.Engine) error {
				return commit(c, e, umbel.CommitRequest{StagingID: id, Scheduled: 1})
			}},
			refusal{"Discard", "staging ID " + string(id), "staging ID", "as Begin returns it", func(c ctx, e umbel.Engine) error {
				return e.Discard(c, umbel.DiscardRequest{Namespace: ns, WorkflowID: "w", StagingID: id})
			}})
	}
	for _, at := range []int64{-1, math.MinInt64} {
		table = append(table, refusal{"Stage", "a negative offset", "offset", "must be", func(c ctx, e umbel.Engine) error {
			return stage(c, e, umbel.StageRequest{Offset: at, Rows: rows(1)})
		}})
	}
	for _, at := range []int64{umbel.MaxRows, math.MaxInt64, math.MaxInt64 - 1} {
		table = append(table, refusal{"Stage", "a huge offset", "fan-out", "10000000 rows of a run", func(c ctx, e umbel.Engine) error {
			return stage(c, e, umbel.StageRequest{Offset: at, Rows: rows(2)})
		}})
	}
	for n, rule := range map[int64]string{-1: "number of all rows", 0: "number of all rows", math.MinInt64: "number of all rows",
		umbel.MaxRows + 1: "10000000 rows of a run", math.MaxInt64: "10000000 rows of a run"} {
		field := "scheduled"
		if n > 0 {
			field = "fan-out"
		}
		table = append(table, refusal{"Commit", "scheduled", field, rule, func(c ctx, e umbel.Engine) error {
			return commit(c, e, umbel.CommitRequest{Rows: rows(1), Scheduled: n})
		}})
	}
	table = append(table, refusal{"Commit", "rows that are nowhere", "staging ID", "must name what is staged", func(c ctx, e umbel.Engine) error {
		return commit(c, e, umbel.CommitRequest{Rows: rows(1), Scheduled: 2})
	}})
	for _, o := range []umbel.OnExisting{-1, 3, math.MaxInt} {
		table = append(table, refusal{"Commit", "on existing", "on existing", "must be 0", func(c ctx, e umbel.Engine) error {
			return commit(c, e, umbel.CommitRequest{Rows: rows(1), Scheduled: 1, OnExisting: o})
		}})
	}
	// what holds of a row holds however it is brought
	return append(table, slices.Concat(
		rowRefusals("Stage", func(c ctx, e umbel.Engine, rows []umbel.StagedRow) error {
			return stage(c, e, umbel.StageRequest{Rows: rows})
		}),
		rowRefusals("Commit", func(c ctx, e umbel.Engine, rows []umbel.StagedRow) error {
			return commit(c, e, umbel.CommitRequest{Rows: rows, Scheduled: int64(len(rows))})
		}))...)
}

func rowRefusals(op string, call func(context.Context, umbel.Engine, []umbel.StagedRow) error) []refusal {
	type ctx = context.Context
	second := func(change func(*umbel.StagedRow)) []umbel.StagedRow { // the first row is good: it must not stay alone
		return rows(3, func(i int, r *umbel.StagedRow) {
			if i == 1 {
				change(r)
			}
		})
	}
	table := slices.Concat(
		names(op, "row 1 of the call: activity type", false, func(c ctx, e umbel.Engine, v string) error {
			return call(c, e, second(func(r *umbel.StagedRow) { r.Type = v }))
		}),
		names(op, "task queue", true, func(c ctx, e umbel.Engine, v string) error {
			return call(c, e, second(func(r *umbel.StagedRow) { r.TaskQueue = v }))
		}),
		names(op, "node", true, func(c ctx, e umbel.Engine, v string) error {
			return call(c, e, second(func(r *umbel.StagedRow) { r.Node = v }))
		}),
		names(op, "key", true, func(c ctx, e umbel.Engine, v string) error {
			return call(c, e, second(func(r *umbel.StagedRow) { r.Key = v }))
		}),
		names(op, "content type", true, func(c ctx, e umbel.Engine, v string) error {
			return call(c, e, second(func(r *umbel.StagedRow) { r.Input.ContentType = v }))
		}),
		durations(op, "delay", func(c ctx, e umbel.Engine, v time.Duration) error {
			return call(c, e, second(func(r *umbel.StagedRow) { r.Delay = v }))
		}),
	)
	for _, at := range []time.Time{time.Unix(-1, 0), time.Unix(1<<40, 0), time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)} {
		table = append(table, refusal{op, "not-before " + at.String(), "not-before", "from the year 1970 to 9999", func(c ctx, e umbel.Engine) error {
			return call(c, e, second(func(r *umbel.StagedRow) { r.NotBefore = at }))
		}})
	}
	return append(table,
		refusal{op, "an input of 2 MiB and a byte", "input", "2097152 payload bytes", func(c ctx, e umbel.Engine) error {
			return call(c, e, rows(1, func(_ int, r *umbel.StagedRow) { r.Input.Data = make([]byte, umbel.MaxPayloadBytes+1) }))
		}},
		refusal{op, "10,001 rows", "call", "10000 rows of a staging call", func(c ctx, e umbel.Engine) error {
			return call(c, e, rows(umbel.MaxStageRows+1))
		}},
		refusal{op, "1 MiB and a byte", "call", "1048576 bytes of a staging call", func(c ctx, e umbel.Engine) error {
			return call(c, e, rows(2, func(i int, r *umbel.StagedRow) { r.Input.Data = make([]byte, umbel.MaxStageBytes/2+i) }))
		}},
		refusal{op, "65 routes", "fan-out", "64 routes of a run", func(c ctx, e umbel.Engine) error {
			return call(c, e, rows(umbel.MaxRoutes+1, func(i int, r *umbel.StagedRow) { r.Node = string(rune('a'+i/26)) + string(rune('a'+i%26)) }))
		}},
	)
}

// policyRefusals are those of what travels with a start for each activity type.
func policyRefusals() []refusal {
	type ctx = context.Context
	call := func(c ctx, e umbel.Engine, types ...umbel.TypePolicy) error {
		_, err := e.Commit(c, umbel.CommitRequest{Namespace: ns, WorkflowID: unstarted, Rows: rows(1), Scheduled: 1, Types: types})
		return err
	}
	policy := func(change func(*umbel.RetryPolicy)) umbel.TypePolicy {
		p := umbel.TypePolicy{Type: task}
		change(&p.Retry)
		return p
	}
	table := slices.Concat(
		names("Commit", "activity type", false, func(c ctx, e umbel.Engine, v string) error {
			return call(c, e, umbel.TypePolicy{Type: v})
		}),
		names("Commit", "retry non-retryable type", false, func(c ctx, e umbel.Engine, v string) error {
			return call(c, e, policy(func(p *umbel.RetryPolicy) { p.NonRetryable = []string{"fine", v} }))
		}),
		durations("Commit", "start-to-close", func(c ctx, e umbel.Engine, v time.Duration) error {
			return call(c, e, umbel.TypePolicy{Type: task, StartToClose: v})
		}),
		durations("Commit", "retry initial", func(c ctx, e umbel.Engine, v time.Duration) error {
			return call(c, e, policy(func(p *umbel.RetryPolicy) { p.Initial, p.Cap = v, umbel.MaxDelay }))
		}),
		durations("Commit", "retry", func(c ctx, e umbel.Engine, v time.Duration) error { // of cap or of what follows from it
			return call(c, e, policy(func(p *umbel.RetryPolicy) { p.Cap = v }))
		}),
	)
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 0.5, 1000.1, math.MaxFloat64, math.SmallestNonzeroFloat64} {
		table = append(table, refusal{"Commit", "factor", "retry factor", "must be from 1 to 1000", func(c ctx, e umbel.Engine) error {
			return call(c, e, policy(func(p *umbel.RetryPolicy) { p.Factor = v }))
		}})
	}
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -0.1, 1.1} {
		table = append(table, refusal{"Commit", "jitter", "retry jitter", "must be from 0 to 1", func(c ctx, e umbel.Engine) error {
			return call(c, e, policy(func(p *umbel.RetryPolicy) { p.Jitter = v }))
		}})
	}
	for _, v := range []int{-1, umbel.MaxAttempts + 1, math.MinInt, math.MaxInt} {
		table = append(table, refusal{"Commit", "attempts", "retry attempts", "must be from 1 to 64", func(c ctx, e umbel.Engine) error {
			return call(c, e, policy(func(p *umbel.RetryPolicy) { p.MaxAttempts = v }))
		}})
	}
	return append(table,
		refusal{"Commit", "a cap below the first wait", "retry cap", "must be from 1m0s", func(c ctx, e umbel.Engine) error {
			return call(c, e, policy(func(p *umbel.RetryPolicy) { p.Initial, p.Cap = time.Minute, time.Second }))
		}},
		refusal{"Commit", "65 non-retryable types", "non-retryable", "64 types", func(c ctx, e umbel.Engine) error {
			return call(c, e, policy(func(p *umbel.RetryPolicy) { p.NonRetryable = slices.Repeat([]string{"x"}, 65) }))
		}},
		refusal{"Commit", "65 policies", "call", "64 activity types", func(c ctx, e umbel.Engine) error {
			return call(c, e, slices.Repeat([]umbel.TypePolicy{{Type: task}}, 65)...)
		}},
	)
}
