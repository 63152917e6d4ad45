package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/umbelhq/umbel"
)

// Gather waits for the run to close and returns N values by ordinal, never nil, the zero Out where there is
// none. The error is nil if every ordinal completed and every value could be decoded; else it is a
// [*umbel.FanOutError], and the values come all the same. Its counts are those of the rows; a value that
// cannot be decoded counts as completed and is in the sample as [umbel.FailureInvalidResult].
//
// With any other error there are no values: [umbel.ErrNotFound], or [umbel.ErrUnavailable], which wraps ctx's
// error when ctx ends; the run goes on, gather it again. Memory is that of the N values and one page: use
// [Run.Results] for more than fits.
func (r *Run[Out]) Gather(ctx context.Context) ([]Out, error) {
	d, err := r.h.describe(ctx, "gather", r.h.runID, 0)
	if err != nil {
		return nil, err
	}
	n := d.Counts.Scheduled
	if n < 0 || n > umbel.MaxOrdinal+1 {
		return nil, r.h.broken("gather", fmt.Sprintf("the server says that the run has %d rows", n))
	}
	var (
		values = make([]Out, n)
		counts = umbel.Counts{Scheduled: n, Pending: n}
		failed failureSample
	)
	for raw, err := range r.h.results(ctx, d.RunID, resultConfig{}) {
		if err != nil {
			return nil, err
		}
		if raw.Ordinal >= n {
			return nil, r.h.broken("gather", fmt.Sprintf("the server returned ordinal %d of a run of %d rows", raw.Ordinal, n))
		}
		res := r.decoded(raw)
		values[res.Ordinal] = res.Value
		failed.add(res.Row, res.Err)
		counts.Pending--
		switch res.Status {
		case umbel.StatusCompleted:
			counts.Completed++
		case umbel.StatusCancelled:
			counts.Cancelled++
		default:
			counts.Failed++
		}
	}
	// The counts are of what was read, so that they fit the values even if Redis was taken back meanwhile.
	if counts.Completed == n && len(failed.rows) == 0 {
		return values, nil
	}
	if d, err = r.h.closed(ctx, d.RunID); err != nil {
		return nil, err
	}
	return values, &umbel.FanOutError{
		WorkflowID: r.h.id, RunID: d.RunID, Status: d.Status, Counts: counts, Sample: failed.first(),
	}
}

// sampleFailures reads the failures of a closed run, as many as a sample holds. It is a help to people: if
// reading fails, the sample is what was read.
func (h *handle) sampleFailures(ctx context.Context, d umbel.DescribeReply) []umbel.FailedRow {
	want := min(d.Counts.Failed, umbel.MaxFailureSample)
	if want == 0 {
		return nil
	}
	var failed failureSample
	for res, err := range h.results(ctx, d.RunID, resultConfig{}) {
		if err != nil {
			break
		}
		failed.add(res.Row, res.Err)
		if int64(len(failed.rows)) >= want {
			break
		}
	}
	return failed.first()
}

// failureSample keeps the first failures by ordinal, in bounded memory.
type failureSample struct{ rows []umbel.FailedRow }

// add takes the row in if err holds a failure.
func (s *failureSample) add(row umbel.Row, err error) {
	if err == nil {
		return
	}
	f, ok := errors.AsType[*umbel.Failure](err)
	if !ok {
		return
	}
	s.rows = append(s.rows, umbel.FailedRow{Row: row, Err: f})
	if len(s.rows) >= 2*umbel.MaxFailureSample {
		s.rows = s.first()
	}
}

func (s *failureSample) first() []umbel.FailedRow {
	slices.SortFunc(s.rows, func(a, b umbel.FailedRow) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	return s.rows[:min(len(s.rows), umbel.MaxFailureSample)]
}
