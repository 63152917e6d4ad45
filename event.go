package umbel

import "time"

// EventType is the kind of an [Event].
type EventType string

// The events of a workflow's history.
const (
	// WorkflowStarted opens a run: RunID, Scheduled.
	WorkflowStarted EventType = "WorkflowStarted"
	// ActivityScheduled adds a row: Ordinal, ActivityType, TaskQueue, Node, Key, Input.
	ActivityScheduled EventType = "ActivityScheduled"
	// ActivityStarted says that an attempt may be claimed from now on: Ordinal, Attempt.
	ActivityStarted EventType = "ActivityStarted"
	// ActivityAttemptFailed records an attempt that will be followed by another: Ordinal, Attempt, Failure (without
	// stacks: those are kept of the last attempt only), NextVisible, Worker, ClaimedAt.
	ActivityAttemptFailed EventType = "ActivityAttemptFailed"
	// ActivityCompleted is a terminal: Ordinal, Attempt, Result, Worker, ClaimedAt.
	ActivityCompleted EventType = "ActivityCompleted"
	// ActivityFailed is a terminal: Ordinal, Attempt, Failure, Worker, ClaimedAt.
	ActivityFailed EventType = "ActivityFailed"
	// ActivityCancelled is a terminal: Ordinal.
	ActivityCancelled EventType = "ActivityCancelled"
	// CancelRequested precedes what a cancel of the run cancels: Reason.
	CancelRequested EventType = "CancelRequested"
	// FanOutDecided is the verdict of the failure policy: Status.
	FanOutDecided EventType = "FanOutDecided"
	// WorkflowClosed is a run's last event: Status.
	WorkflowClosed EventType = "WorkflowClosed"
)

// Terminal reports whether t resolves an ordinal.
func (t EventType) Terminal() bool {
	return t == ActivityCompleted || t == ActivityFailed || t == ActivityCancelled
}

// OfRow reports whether events of type t are about one row, so that their Ordinal means something.
func (t EventType) OfRow() bool {
	return t.Terminal() || t == ActivityScheduled || t == ActivityStarted || t == ActivityAttemptFailed
}

// Event is one entry of a workflow's history, as readers see it. Fields that its type does not use are zero.
type Event struct {
	Seq  int64     // 1, 2, 3, … without a gap
	Type EventType //
	At   time.Time // when it was recorded, by Redis's clock; for what a worker reported, when it reported
	Row            // Ordinal, Key, Type, Attempt, Input as the event's type says

	RunID       RunID
	Scheduled   int64 // WorkflowStarted: N
	TaskQueue   string
	Node        string
	Result      Payload
	Failure     *Failure
	NextVisible time.Time // ActivityAttemptFailed: when the next attempt is due
	Worker      string    // who ran the attempt
	ClaimedAt   time.Time // when it was claimed
	Status      Status    // FanOutDecided, WorkflowClosed
	Reason      string    // CancelRequested
}
