package umbel

import (
	"fmt"
	"strconv"
	"time"
)

// Status is where a run, or the outcome of a row, stands.
type Status string

// The statuses. A run is running until it is closed; a result is completed, failed or cancelled.
const (
	StatusRunning   Status = "running"
	StatusCompleted Status = "completed" // a run: closed, and its policy is satisfied
	StatusFailed    Status = "failed"    // a run: closed, and its policy is not satisfied
	StatusCancelled Status = "cancelled"
)

// Row tells which row of a run something is about.
type Row struct {
	Ordinal int64   // position in the run, from 0
	Key     string  // the item's label, if it has one
	Type    string  // activity type
	Attempt int     // from 1
	Input   Payload // only where it was asked for
}

// Result is the outcome of one row.
type Result[Out any] struct {
	Row
	Status Status // completed, failed or cancelled
	Value  Out    // zero unless completed
	// Err is nil when completed; else it holds a *[Failure] (failed) or wraps [ErrCancelled]. Its type is
	// error, so that it can be returned as one.
	Err error
	// Cursor is the place right after this result, to go on from in any process.
	Cursor Cursor
}

// Counts says how the rows of a run stand. They are counts of distinct ordinals:
// Scheduled = Pending + Claimed + Completed + Failed + Cancelled.
type Counts struct {
	Scheduled, Pending, Claimed, Completed, Failed, Cancelled int64
}

// Resolved is how many rows have their terminal event.
func (c Counts) Resolved() int64 { return c.Completed + c.Failed + c.Cancelled }

// RunInfo is how a run stands.
type RunInfo struct {
	WorkflowID WorkflowID
	RunID      RunID
	Status     Status
	Types      []string // activity types of its rows, in order of their first row's route
	Counts     Counts
	StartedAt  time.Time
	ClosedAt   time.Time // zero while it is running
}

// FanOutError says that a fan-out is closed and not every row of it completed. Sample holds the first
// failures by ordinal as far as they were read, at most [MaxFailureSample]; Counts counts all of them.
type FanOutError struct {
	WorkflowID WorkflowID
	RunID      RunID
	Status     Status
	Counts     Counts
	Sample     []FailedRow
}

// MaxFailureSample bounds [FanOutError.Sample], so that an error stays small whatever the size of the run.
const MaxFailureSample = 100

// FailedRow is a row that failed for good.
type FailedRow struct {
	Row
	Err *Failure
}

// Error counts what did not complete and quotes the first failure.
func (e *FanOutError) Error() string {
	s := fmt.Sprintf("umbel: %s (run %s) is %s: %d of %d completed, %d failed, %d cancelled",
		strconv.Quote(string(e.WorkflowID)), e.RunID, e.Status,
		e.Counts.Completed, e.Counts.Scheduled, e.Counts.Failed, e.Counts.Cancelled)
	if len(e.Sample) > 0 {
		f := e.Sample[0]
		s += fmt.Sprintf("; ordinal %d: %s: %s", f.Ordinal, f.Err.Type, f.Err.Message)
	}
	return s
}

// Unwrap returns the sampled failures, so that errors.Is and errors.As look into them; a run that was
// cancelled also matches [ErrCancelled].
func (e *FanOutError) Unwrap() []error {
	var errs []error
	if e.Status == StatusCancelled {
		errs = append(errs, ErrCancelled)
	}
	for _, f := range e.Sample {
		errs = append(errs, f.Err)
	}
	return errs
}
