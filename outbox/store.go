package outbox

import (
	"context"
	"iter"
	"time"

	"github.com/umbelhq/umbel"
)

// Store is the outbox contract, small enough to implement twice. It moves rows only: no event is written, and
// a run that a server serves must be settled through the server or a history.Recorder instead.
//
// Every method validates what it is given before it writes, returns *umbel.Error, and is safe for concurrent
// use. When the context ends the call returns an error and may or may not have been applied.
type Store interface {
	// Append adds rows at the end of their runs. A row whose ordinal is below its run's N exists and is
	// silently skipped; one beyond N leaves a gap and is umbel.ErrGap, and then nothing of that workflow is
	// written. The rows of one workflow appear together. Rows must be pending (or have no status).
	Append(ctx context.Context, rows []Row) error
	// Claim takes up to limit due rows of any scope and returns them, claimed, in the order of [Compare] and with
	// the VisibleAfter that they waited for. It returns fewer than limit only if no more are due. A limit below 1
	// is umbel.ErrInvalid.
	Claim(ctx context.Context, limit int) ([]Row, error)
	// ClaimScoped is Claim restricted to scope. The scope is applied in the same step as the claim.
	ClaimScoped(ctx context.Context, scope Scope, limit int) ([]Row, error)
	// RearmStale puts back up to limit claimed rows that were claimed before olderThan: pending, due at
	// visible, attempt kept, ClaimedAt cleared. Claimed rows without a ClaimedAt are left alone. It returns
	// the rows that it put back, as they are now. A limit below 1 is umbel.ErrInvalid.
	RearmStale(ctx context.Context, olderThan time.Time, limit int, visible time.Time) ([]Row, error)
	// Rearm puts the given rows back, if they exist and are unresolved: pending, due at their VisibleAfter
	// (zero: now), attempt kept. It writes no event.
	Rearm(ctx context.Context, rows []Row) error
	// Complete, Fail and Cancel end a row. An absent or resolved one is left as it is, without an error.
	Complete(ctx context.Context, key Key) error
	Fail(ctx context.Context, key Key) error
	Cancel(ctx context.Context, key Key) error
	// Retry puts a row back with the number of tries spent and when it is due. An absent or resolved row is
	// left as it is, without an error.
	Retry(ctx context.Context, key Key, attempt int, visible time.Time) error
	// Get returns a row, or umbel.ErrNotFound. Only a pending row has its VisibleAfter for sure.
	Get(ctx context.Context, key Key) (Row, error)
	// Scan yields the rows of a workflow's current run by ordinal; an error ends it. An unknown workflow has
	// none.
	Scan(ctx context.Context, namespace string, id umbel.WorkflowID) iter.Seq2[Row, error]
}
