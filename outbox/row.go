package outbox

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/umbelhq/umbel"
)

// Row stages one activity for dispatch.
type Row struct {
	Namespace    string // empty reads as default
	WorkflowID   umbel.WorkflowID
	Ordinal      int64
	RunID        umbel.RunID // empty: the workflow's implicit run. It must not be that of another workflow
	TaskQueue    string      // empty reads as default
	Node         string      // empty: any worker of the pool
	ActivityType string
	Input        umbel.Payload
	Status       Status    // empty reads as pending
	Attempt      int       // tries already spent
	VisibleAfter time.Time // whole milliseconds; zero: now. Kept while pending, and told by the claim that takes it
	ClaimedAt    time.Time // set only while claimed
}

// Key returns what names the row.
func (r Row) Key() Key {
	return Key{Namespace: cmp.Or(r.Namespace, umbel.DefaultNamespace), WorkflowID: r.WorkflowID, Ordinal: r.Ordinal}
}

// WithDefaults returns r as it reads when it was stored without a namespace, task queue or status.
func (r Row) WithDefaults() Row {
	r.Namespace = cmp.Or(r.Namespace, umbel.DefaultNamespace)
	r.TaskQueue = cmp.Or(r.TaskQueue, umbel.DefaultTaskQueue)
	r.Status = cmp.Or(r.Status, Pending)
	r.VisibleAfter = CeilMilli(r.VisibleAfter)
	return r
}

// CeilMilli rounds t up to a whole millisecond, so that nothing is due early. The zero time stays zero.
func CeilMilli(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	d := t.Truncate(time.Millisecond).UTC() // without t's monotonic reading, which no store keeps
	if d.Before(t) {
		d = d.Add(time.Millisecond)
	}
	return d
}

// Key names a row of a workflow's current run.
type Key struct {
	Namespace  string
	WorkflowID umbel.WorkflowID
	Ordinal    int64
}

// Dispatch returns the dispatch key, {workflow_id}:{ordinal}. It is unique in the namespace.
func (k Key) Dispatch() string { return umbel.DispatchKey(k.WorkflowID, k.Ordinal) }

// ParseKey reads a dispatch key. The workflow ID may hold colons; the ordinal is what follows the last one,
// written without sign or leading zeros.
func ParseKey(namespace, dispatch string) (Key, error) {
	at := strings.LastIndexByte(dispatch, ':')
	if at < 1 {
		return Key{}, umbel.Invalid("dispatch key", dispatch, "must be {workflow_id}:{ordinal}")
	}
	o, err := strconv.ParseInt(dispatch[at+1:], 10, 64)
	if err != nil || o < 0 || strconv.FormatInt(o, 10) != dispatch[at+1:] {
		return Key{}, umbel.Invalid("dispatch key", dispatch, "must end with an ordinal, a decimal without sign or leading zeros")
	}
	return Key{Namespace: namespace, WorkflowID: umbel.WorkflowID(dispatch[:at]), Ordinal: o}, nil
}

// Compare orders rows as claims through a [Store] do: by VisibleAfter, then ordinal, then workflow ID.
func Compare(a, b Row) int {
	return cmp.Or(
		a.VisibleAfter.Compare(b.VisibleAfter),
		cmp.Compare(a.Ordinal, b.Ordinal),
		cmp.Compare(a.WorkflowID, b.WorkflowID),
	)
}
