package history

import (
	"context"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/outbox"
)

// Workflow names whose history is meant, and which run of it. An empty RunID is the workflow's implicit run.
type Workflow struct {
	Namespace string // empty: default
	ID        umbel.WorkflowID
	RunID     umbel.RunID
}

// Token fences writers: taking one makes every older one of the workflow useless.
type Token string

// Position is what an append expects: the token in force and the head as the writer knows it.
type Position struct {
	Token Token
	Head  int64
}

// Item is one activity of a fan-out that is dispatched.
type Item struct {
	ActivityType string
	TaskQueue    string // empty: default
	Node         string
	Key          string
	Input        umbel.Payload
}

// Completion is the outcome of an attempt: Failure is nil for a success.
type Completion struct {
	RunID   umbel.RunID // the run that the outcome belongs to; empty: whichever
	Ordinal int64
	Attempt int // from 1
	Result  umbel.Payload
	Failure *umbel.Failure
}

// Outcome says what became of a [Completion].
type Outcome string

// The outcomes.
const (
	// Recorded: one terminal event was appended.
	Recorded Outcome = "recorded"
	// Dropped: the completion is of another run, or its ordinal is resolved. Nothing was written.
	Dropped Outcome = "dropped"
)

// Store is the history contract, small enough to implement twice. Appends are all or nothing. A position
// whose token is not the one in force is umbel.ErrFenced; one whose head is not the head is umbel.ErrConflict;
// an append past MaxSeq is umbel.ErrLimit. None of them changes anything. Errors are *umbel.Error; every
// method is safe for concurrent use; when the context ends a call returns an error and may or may not have
// been applied.
type Store interface {
	// Acquire takes the write token of a workflow and returns it with the head.
	Acquire(ctx context.Context, wf Workflow) (Position, error)
	// Append adds events at the position and returns the new head: up to umbel.MaxPageItems of them, and as many as
	// take umbel.MaxStageBytes, or a larger one alone; more are umbel.ErrLimit. A terminal event is umbel.ErrInvalid: Complete
	// writes those, and resolves the row in the same step.
	Append(ctx context.Context, wf Workflow, at Position, events []umbel.Event) (int64, error)
	// Dispatch adds, for each item in order, ActivityScheduled and ActivityStarted with attempt 1, and its
	// pending row: ordinals go on from the run's N. The head moves by exactly twice the items. No items is no
	// change.
	Dispatch(ctx context.Context, wf Workflow, at Position, items []Item) (int64, error)
	// Complete adds the one terminal event of an ordinal and resolves its row, or drops the completion. It
	// takes constant time, however long the history is. It returns the head. An ordinal that was not dispatched
	// is umbel.ErrNotFound, an attempt of an open row that was not started umbel.ErrInvalid. A row
	// that was ended through the Outbox has no terminal yet.
	Complete(ctx context.Context, wf Workflow, at Position, c Completion) (Outcome, int64, error)
	// Head returns the last sequence number, 0 for an unknown workflow.
	Head(ctx context.Context, wf Workflow) (int64, error)
	// Read returns up to limit events from the sequence number from on, none past the head. A limit below 1 is
	// umbel.ErrInvalid.
	Read(ctx context.Context, wf Workflow, from int64, limit int) ([]umbel.Event, error)
	// Outbox returns the rows that the store's dispatches stage.
	Outbox() outbox.Store
}

// MaxSeq is the largest sequence number: what a double, and so Lua, can count to.
const MaxSeq = 1<<53 - 1
