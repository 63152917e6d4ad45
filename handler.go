package umbel

import (
	"context"
	"strconv"
	"time"
)

// Handler runs one attempt on payloads. The typed form is worker.Handle.
type Handler func(ctx context.Context, in Payload) (Payload, error)

// Interceptor wraps a Handler, for tracing, metrics or encryption.
type Interceptor func(Handler) Handler

// Info tells a handler which attempt it runs.
type Info struct {
	Namespace  string
	TaskQueue  string
	Node       string // the row's own, empty if it is unpinned
	WorkflowID WorkflowID
	RunID      RunID
	Ordinal    int64
	Key        string
	Type       string
	Attempt    int // from 1
	// DispatchKey is {workflow_id}:{ordinal}.
	DispatchKey string
	// IdempotencyKey is {workflow_id}:{run_id}:{ordinal}: equal over the attempts of a row. Hand it to
	// services that take one.
	IdempotencyKey string
	Token          Token
	// Deadline is when the attempt's start-to-close ends, zero without one.
	Deadline time.Time
	// LastFailure is why the attempt before failed, nil on the first.
	LastFailure *Failure
}

// DispatchKey is {workflow_id}:{ordinal}, byte for byte.
func DispatchKey(id WorkflowID, ordinal int64) string {
	return string(id) + ":" + strconv.FormatInt(ordinal, 10)
}

// IdempotencyKey is {workflow_id}:{run_id}:{ordinal}.
func IdempotencyKey(id WorkflowID, run RunID, ordinal int64) string {
	return string(id) + ":" + string(run) + ":" + strconv.FormatInt(ordinal, 10)
}
