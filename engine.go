package umbel

import (
	"context"
	"time"
)

// Engine is the seam between client and worker on one side and the server on the other. The server
// implements it in process. It is not meant to be implemented elsewhere: methods and fields may be added in
// a minor version.
//
// Every method is safe for concurrent use, validates its request before anything is written, returns
// *[Error], and may be repeated: a call whose reply was lost has the same effect when it is sent again. When
// the context ends the call returns with [CodeUnavailable] wrapping the context's error; whether it was
// applied is then unknown. Stage and Discard first wait for what they have sent to Redis.
type Engine interface {
	Starter
	Poller
	Gatherer
	Operator
}

// Starter starts runs. The way of a large fan-out is Begin, Stage …, Commit; a small one is a single Commit
// that carries its rows.
type Starter interface {
	// Begin says whether the workflow exists and, if not, names a staging area. It writes nothing.
	Begin(context.Context, BeginRequest) (BeginReply, error)
	// Stage adds rows to a staging area, which expires when nothing is added to it for ten minutes. Rows that
	// it has already are acknowledged again; a gap or an expired area is ErrStagingLost.
	Stage(context.Context, StageRequest) (StageReply, error)
	// Commit makes what was staged, and the rows that it carries, a run: all of it or nothing. If the workflow
	// exists it attaches to the run when OnExisting allows it; else it is ErrAlreadyExists naming the run.
	Commit(context.Context, CommitRequest) (CommitReply, error)
	// Discard forgets what was staged. It is no error if nothing was.
	Discard(context.Context, DiscardRequest) error
}

// Poller is a worker's side.
type Poller interface {
	// Poll waits for due rows and claims them. An empty reply after the wait is no error.
	Poll(context.Context, PollRequest) (PollReply, error)
	// Leave ends the polls of a worker that is about to stop: each answers at once with what it has claimed, be it
	// nothing. To end a poll's context instead loses rows that are on their way, until their lease lapses.
	Leave(context.Context, LeaveRequest) error
	// Renew extends the leases of the rows that a worker holds and says which of them it holds no more.
	Renew(context.Context, RenewRequest) (RenewReply, error)
	// Report records outcomes. Every item has its own verdict; one bad item never fails its batch.
	Report(context.Context, ReportRequest) (ReportReply, error)
}

// Gatherer reads how a run stands and what came of it.
type Gatherer interface {
	// Describe returns a run's status and counts, after waiting for its close if asked to.
	Describe(context.Context, DescribeRequest) (DescribeReply, error)
	// Results returns a page of results. A page may be empty and still advance.
	Results(context.Context, ResultsRequest) (ResultsReply, error)
}

// Operator is for people and tools.
type Operator interface {
	// Cancel cancels a run, or some of its rows. Once it has returned, none of them is claimed again.
	Cancel(context.Context, CancelRequest) (CancelReply, error)
	// History returns a page of a workflow's events, after waiting for one if asked to.
	History(context.Context, HistoryRequest) (HistoryReply, error)
	// List returns a page of the runs of a namespace, the latest started first. A page may be empty and still
	// advance.
	List(context.Context, ListRequest) (ListReply, error)
}

// Digest is what tells two starts of a workflow ID apart: a SHA-256 over N and what is said of each item.
type Digest [32]byte

// OnExisting says what a start does when the workflow ID has a run.
type OnExisting int

// The ways to treat a workflow that exists.
const (
	// SameInputs attaches if the inputs are equal, else refuses. The default.
	SameInputs OnExisting = iota
	// Existing attaches without comparing.
	Existing
	// Reject refuses.
	Reject
)

// BeginRequest asks whether a workflow exists.
type BeginRequest struct {
	Namespace  string
	WorkflowID WorkflowID
}

// BeginReply says which run a workflow has, or where to stage one.
type BeginReply struct {
	Exists    bool
	RunID     RunID  // of the run that exists
	Digest    Digest // of the run that exists
	StagingID StagingID
}

// StagedRow is a row to be: one item of a fan-out with its route.
type StagedRow struct {
	Type      string
	TaskQueue string // empty: DefaultTaskQueue
	Node      string // empty: any worker of the pool
	Key       string
	Delay     time.Duration
	NotBefore time.Time
	Input     Payload
}

// Validate reports the first value of r that breaks a rule: a name, the payload's size, the delay.
func (r StagedRow) Validate() error {
	if err := ValidateName("activity type", r.Type); err != nil {
		return err
	}
	if err := ValidateLabel("task queue", r.TaskQueue); err != nil {
		return err
	}
	if err := ValidateLabel("node", r.Node); err != nil {
		return err
	}
	if err := ValidateLabel("key", r.Key); err != nil {
		return err
	}
	if err := ValidateDuration("delay", r.Delay, 0, MaxDelay); err != nil {
		return err
	}
	if !r.NotBefore.IsZero() && (r.NotBefore.Before(time.Unix(0, 0)) || r.NotBefore.After(lastInstant)) {
		return Invalid("not-before", r.NotBefore.UTC().Format(time.RFC3339), "must be from the year 1970 to 9999")
	}
	return r.Input.Validate("input")
}

// lastInstant is the latest not-before: what RFC 3339 can write, and exact in a double as milliseconds.
var lastInstant = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// StageRequest stages rows at the ordinals from Offset on: at most [MaxStageRows] rows and [MaxStageBytes],
// or one larger row.
type StageRequest struct {
	Namespace  string
	WorkflowID WorkflowID
	StagingID  StagingID
	Offset     int64
	Rows       []StagedRow
}

// StageReply says where the next call goes on.
type StageReply struct {
	Next int64
}

// CommitRequest commits a run of Scheduled rows: those staged under StagingID, then Rows. Without StagingID
// all rows are in Rows.
type CommitRequest struct {
	Namespace  string
	WorkflowID WorkflowID
	StagingID  StagingID
	Rows       []StagedRow
	Scheduled  int64 // N
	Types      []TypePolicy
	Digest     Digest
	OnExisting OnExisting
}

// CommitReply names the run. Attached is set if it existed already.
type CommitReply struct {
	RunID     RunID
	Scheduled int64
	Attached  bool
}

// DiscardRequest names what was staged.
type DiscardRequest struct {
	Namespace  string
	WorkflowID WorkflowID
	StagingID  StagingID
}

// PollRequest asks for rows in a scope.
type PollRequest struct {
	Namespace string
	TaskQueue string
	Node      string   // empty: unpinned rows only
	Types     []string // only rows of these types
	Worker    string   // this incarnation of the worker, for history and people
	MaxRows   int      // free slots, 1 to MaxPollRows
	// Wait is how long the poll is held open while no row is due: at most MaxPollWait, 0 to claim what is due
	// and answer at once.
	Wait time.Duration
}

// PollReply holds the claimed rows.
type PollReply struct {
	Rows []ClaimedRow
}

// ClaimedRow is a row in a worker's hands, until its lease lapses.
type ClaimedRow struct {
	Row
	WorkflowID   WorkflowID
	RunID        RunID
	Namespace    string
	TaskQueue    string
	Node         string // the row's own, empty if it is unpinned
	Token        Token
	Lease        time.Duration // from the claim on; renewing starts it anew
	StartToClose time.Duration // 0: none
	LastFailure  *Failure      // of the attempt before
}

// DispatchKey is {workflow_id}:{ordinal}.
func (r ClaimedRow) DispatchKey() string { return DispatchKey(r.WorkflowID, r.Ordinal) }

// LeaveRequest names a worker as its polls do.
type LeaveRequest struct {
	Namespace string
	Worker    string
}

// RenewRequest names the rows that a worker holds.
type RenewRequest struct {
	Namespace string
	Worker    string
	Tokens    []Token
}

// RenewReply answers token by token.
type RenewReply struct {
	States []HoldState
}

// HoldState is how a worker stands to a row.
type HoldState int

// The states of a hold.
const (
	// Held: the lease was extended.
	Held HoldState = iota + 1
	// HoldLost: the lease lapsed, or the row is resolved. What the handler returns will probably be dropped.
	HoldLost
	// HoldCancelled: the row or its run was cancelled.
	HoldCancelled
	// HoldInvalid: the token was not issued by this system, or for another namespace.
	HoldInvalid
)

// ReportRequest reports outcomes: at most [MaxReportItems] and [MaxReportBytes], or one larger item.
type ReportRequest struct {
	Namespace string
	Worker    string
	Items     []ReportItem
}

// Outcome is what became of an attempt.
type Outcome int

// The outcomes.
const (
	// OutcomeCompleted: Result is the row's result.
	OutcomeCompleted Outcome = iota + 1
	// OutcomeFailed: Failure says why. The server decides on another attempt.
	OutcomeFailed
	// OutcomeReleased: the worker gives the row back; no attempt is spent, nothing is written to history.
	OutcomeReleased
)

// ReportItem is the outcome of one row.
type ReportItem struct {
	Token      Token
	Outcome    Outcome
	Result     Payload
	Failure    *Failure
	RetryAfter time.Duration // overrides the policy's wait, 0: the policy's
}

// ReportReply answers item by item.
type ReportReply struct {
	Verdicts []Verdict
}

// VerdictCode is what became of a reported item. Every one of them is final: the worker is done with the row.
type VerdictCode int

// The verdicts.
const (
	// Recorded: the terminal is in history.
	Recorded VerdictCode = iota + 1
	// Retrying: the failed attempt is in history, another will follow.
	Retrying
	// Released: the row waits for another worker.
	Released
	// Dropped: the ordinal was resolved before; Verdict.Attempt is the attempt that counts (0: cancelled).
	Dropped
	// Stale: a failure or release of a claim that no longer holds the row. It changed nothing.
	Stale
	// Refused: the item breaks a rule; Verdict.Err says which.
	Refused
)

// Verdict answers a report item.
type Verdict struct {
	Code    VerdictCode
	Attempt int
	Err     *Error
}

// DescribeRequest names a workflow, or with RunID a certain run of it.
type DescribeRequest struct {
	Namespace  string
	WorkflowID WorkflowID
	RunID      RunID
	// Wait holds the reply back until the run is closed, at most this long and at most MaxPollWait.
	Wait time.Duration
}

// DescribeReply is how a run stands.
type DescribeReply struct {
	RunInfo
}

// ResultsRequest asks for results after Cursor, as they were recorded, or by ordinal.
type ResultsRequest struct {
	Namespace  string
	WorkflowID WorkflowID
	RunID      RunID
	Cursor     Cursor // empty: from the start
	// Ordered asks for results by ordinal. A page ends before the first ordinal that is still open.
	Ordered    bool
	Status     Status // only results that are completed, failed or cancelled; empty: all
	WithInputs bool
	Limit      int // 1 to MaxPageItems, 0: as many as a page holds
	// Wait holds the reply back until there is a result, or the run is closed.
	Wait time.Duration
}

// ResultsReply is a page. Next goes on after it; Done says that the run is closed and has no more.
type ResultsReply struct {
	RunID   RunID
	Results []Result[Payload]
	Next    Cursor
	Done    bool
}

// CancelRequest cancels a run, or with Ordinals only those rows of it.
type CancelRequest struct {
	Namespace  string
	WorkflowID WorkflowID
	RunID      RunID
	Reason     string
	Ordinals   []int64 // at most MaxReportItems
}

// CancelReply says how many rows this call cancelled. It is 0 when all were resolved before.
type CancelReply struct {
	RunID     RunID
	Cancelled int64
}

// HistoryRequest asks for the events from From on (1 is the first).
type HistoryRequest struct {
	Namespace  string
	WorkflowID WorkflowID
	RunID      RunID // must be a run of the workflow if it is given
	From       int64
	Limit      int // 1 to MaxPageItems, 0: as many as a page holds
	// Wait holds the reply back until there is an event, or the workflow's run is closed: at most MaxPollWait.
	Wait time.Duration
}

// HistoryReply is a page of events; Head is the last sequence number there is.
type HistoryReply struct {
	Events []Event
	Head   int64
}

// ListRequest asks for runs after Cursor, the latest started first.
type ListRequest struct {
	Namespace string
	Status    Status // empty: any
	Type      string // only runs that have rows of this activity type; empty: any
	Prefix    string // only workflow IDs that begin with it; empty: any
	Cursor    Cursor // empty: from the latest
	Limit     int    // 1 to MaxListItems, 0: MaxListItems
}

// ListReply is a page. Next goes on after it; Done says that there is no more.
type ListReply struct {
	Runs []RunInfo
	Next Cursor
	Done bool
}
