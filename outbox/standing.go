package outbox

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/umbelhq/umbel"
)

// Standing is how a run stands.
type Standing struct {
	Status    umbel.Status
	Counts    umbel.Counts
	StartedAt time.Time
	ClosedAt  time.Time // zero while it is running
}

// staging is the status of rows that are not committed: there is no run yet.
const staging = "staging"

// Standing reads how a run stands: its counts are kept in its record, one number per route and per status.
func (o *Redis) Standing(ctx context.Context, run *Run) (Standing, error) {
	var m map[string]string
	err := o.scripts.Retry(ctx, func() (err error) {
		m, err = o.rdb.HGetAll(ctx, run.Keys.Record()).Result()
		return err
	})
	if err != nil {
		return Standing{}, o.fail("read run", err)
	}
	if m["status"] == "" || m["status"] == staging { // staged again only: Redis was taken back to before the commit
		o.runs.drop(run.ID)
		return Standing{}, &umbel.Error{Code: umbel.CodeNotFound, Op: "read run", WorkflowID: run.WorkflowID, RunID: run.ID, NotApplied: true}
	}
	return o.parseStanding(run, m)
}

// parseStanding reads the part of a run's record that changes.
func (o *Redis) parseStanding(run *Run, m map[string]string) (Standing, error) {
	var err error
	num := func(field string) int64 {
		if m[field] == "" {
			return 0
		}
		n, e := strconv.ParseInt(m[field], 10, 64)
		if e != nil {
			err = o.broken("read run", run.WorkflowID, run.ID, fmt.Errorf("field %s is %q", field, m[field]))
		}
		return n
	}
	s := Standing{
		Status: umbel.Status(m["status"]),
		Counts: umbel.Counts{
			Scheduled: num("n"), Completed: num("completed"), Failed: num("failed"), Cancelled: num("cancelled"),
		},
		StartedAt: time.UnixMilli(num("started")).UTC(),
	}
	for i := range num("nroutes") {
		s.Counts.Pending += num("p" + strconv.FormatInt(i, 10))
	}
	s.Counts.Claimed = s.Counts.Scheduled - s.Counts.Resolved() - s.Counts.Pending
	if s.Status != umbel.StatusRunning {
		s.ClosedAt = time.UnixMilli(num("closed")).UTC()
	}
	return s, err
}
