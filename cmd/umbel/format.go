package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/umbelhq/umbel"
)

// Formats.
const (
	formatTable = "table"
	formatJSON  = "json"
	formatRaw   = "raw"
)

// printer prints records, one by one: a row of a table, or a JSON object a line. live printers show each at once.
type printer struct {
	w      *bufio.Writer
	format string
	live   bool
	header []string
	widths []int
	enc    *json.Encoder
}

func (a *app) printer(cmd *cobra.Command, live bool, header ...string) *printer {
	p := &printer{w: bufio.NewWriterSize(cmd.OutOrStdout(), 64<<10), format: a.format, live: live, header: header}
	p.enc = json.NewEncoder(p.w)
	p.enc.SetEscapeHTML(false)
	return p
}

// print prints a record: as JSON object, or as the columns of a table.
func (p *printer) print(object any, columns ...string) error {
	if p.format == formatJSON {
		if err := p.enc.Encode(object); err != nil {
			return err
		}
	} else {
		if p.header != nil {
			p.row(p.header)
			p.header = nil
		}
		p.row(columns)
	}
	if p.live {
		return p.w.Flush()
	}
	return nil
}

// end writes what is left, and returns err, else why it could not. A table without rows still has its header.
func (p *printer) end(err error) error {
	if err == nil && p.format == formatTable && p.header != nil {
		p.row(p.header)
	}
	return errors.Join(err, p.w.Flush())
}

// each calls do for what seq yields, until an error.
func each[T any](seq func(func(T, error) bool), do func(T) error) error {
	for v, err := range seq {
		if err == nil {
			err = do(v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// The JSON objects. Their field names are part of what users hold on to.

type countsJSON struct {
	Scheduled int64 `json:"scheduled"`
	Pending   int64 `json:"pending"`
	Claimed   int64 `json:"claimed"`
	Completed int64 `json:"completed"`
	Failed    int64 `json:"failed"`
	Cancelled int64 `json:"cancelled"`
}

type runJSON struct {
	WorkflowID umbel.WorkflowID `json:"workflow_id"`
	RunID      umbel.RunID      `json:"run_id"`
	Status     umbel.Status     `json:"status"`
	Counts     countsJSON       `json:"counts"`
	Types      []string         `json:"types"`
	StartedAt  time.Time        `json:"started_at"`
	ClosedAt   time.Time        `json:"closed_at,omitzero"`
}

func newRunJSON(r umbel.RunInfo) runJSON {
	return runJSON{
		WorkflowID: r.WorkflowID, RunID: r.RunID, Status: r.Status, Counts: countsJSON(r.Counts),
		Types: append([]string{}, r.Types...), StartedAt: r.StartedAt.UTC(), ClosedAt: utc(r.ClosedAt),
	}
}

type startedJSON struct {
	WorkflowID umbel.WorkflowID `json:"workflow_id"`
	RunID      umbel.RunID      `json:"run_id"`
	Attached   bool             `json:"attached"`
}

// payloadJSON returns a payload's text, or its bytes if they are no UTF-8, and its content type.
func payloadJSON(p umbel.Payload) (text *string, bytes *[]byte, contentType *string) {
	if utf8.Valid(p.Data) {
		return new(string(p.Data)), nil, &p.ContentType
	}
	return nil, &p.Data, &p.ContentType
}

type failureJSON struct {
	Type         string       `json:"type"`
	Message      string       `json:"message"`
	Attempt      int          `json:"attempt,omitzero"`
	NonRetryable bool         `json:"non_retryable,omitzero"`
	Stack        string       `json:"stack,omitzero"`
	Cause        *failureJSON `json:"cause,omitzero"`
}

func newFailureJSON(f *umbel.Failure) *failureJSON {
	if f == nil {
		return nil
	}
	return &failureJSON{
		Type: f.Type, Message: f.Message, Attempt: f.Attempt, NonRetryable: f.NonRetryable, Stack: f.Stack,
		Cause: newFailureJSON(f.Cause),
	}
}

// failureOf is why a result has no value: a failure, or else that it was cancelled.
func failureOf(err error) *umbel.Failure {
	if f, ok := errors.AsType[*umbel.Failure](err); ok {
		return f
	}
	return &umbel.Failure{Type: string(umbel.StatusCancelled), Message: string(umbel.StatusCancelled)}
}

type resultJSON struct {
	Ordinal          int64        `json:"ordinal"`
	Key              string       `json:"key"`
	Type             string       `json:"activity"`
	Status           umbel.Status `json:"status"`
	Attempt          int          `json:"attempt"`
	Result           *string      `json:"result,omitempty"`
	ResultBase64     *[]byte      `json:"result_base64,omitempty"`
	ContentType      *string      `json:"content_type,omitempty"`
	Error            *failureJSON `json:"error,omitempty"`
	Input            *string      `json:"input,omitempty"`
	InputBase64      *[]byte      `json:"input_base64,omitempty"`
	InputContentType *string      `json:"input_content_type,omitempty"`
	Cursor           umbel.Cursor `json:"cursor,omitempty"`
}

func newResultJSON(r umbel.Result[umbel.Payload], withInput bool) resultJSON {
	j := resultJSON{
		Ordinal: r.Ordinal, Key: r.Key, Type: r.Type, Status: r.Status, Attempt: r.Attempt, Cursor: r.Cursor,
	}
	if r.Err != nil {
		j.Error = newFailureJSON(failureOf(r.Err))
	} else {
		j.Result, j.ResultBase64, j.ContentType = payloadJSON(r.Value)
	}
	if withInput {
		j.Input, j.InputBase64, j.InputContentType = payloadJSON(r.Input)
	}
	return j
}

type eventJSON struct {
	Seq          int64           `json:"seq"`
	Type         umbel.EventType `json:"type"`
	At           time.Time       `json:"at,omitzero"`
	RunID        umbel.RunID     `json:"run_id,omitempty"`
	Scheduled    *int64          `json:"scheduled,omitempty"`
	Ordinal      *int64          `json:"ordinal,omitempty"`
	Activity     string          `json:"activity,omitempty"`
	Key          string          `json:"key,omitempty"`
	TaskQueue    string          `json:"task_queue,omitempty"`
	Node         string          `json:"node,omitempty"`
	Attempt      int             `json:"attempt,omitempty"`
	Input        *string         `json:"input,omitempty"`
	InputBase64  *[]byte         `json:"input_base64,omitempty"`
	Result       *string         `json:"result,omitempty"`
	ResultBase64 *[]byte         `json:"result_base64,omitempty"`
	ContentType  *string         `json:"content_type,omitempty"`
	Error        *failureJSON    `json:"error,omitempty"`
	NextVisible  time.Time       `json:"next_visible,omitzero"`
	Worker       string          `json:"worker,omitempty"`
	ClaimedAt    time.Time       `json:"claimed_at,omitzero"`
	Status       umbel.Status    `json:"status,omitempty"`
	Reason       string          `json:"reason,omitempty"`
}

func newEventJSON(e umbel.Event) eventJSON {
	j := eventJSON{
		Seq: e.Seq, Type: e.Type, At: utc(e.At), RunID: e.RunID, Activity: e.Row.Type, Key: e.Key,
		TaskQueue: e.TaskQueue, Node: e.Node, Attempt: e.Attempt, Error: newFailureJSON(e.Failure),
		NextVisible: utc(e.NextVisible), Worker: e.Worker, ClaimedAt: utc(e.ClaimedAt), Status: e.Status, Reason: e.Reason,
	}
	switch e.Type {
	case umbel.WorkflowStarted:
		j.Scheduled = new(e.Scheduled)
	case umbel.ActivityScheduled:
		j.Input, j.InputBase64, j.ContentType = payloadJSON(e.Input)
	case umbel.ActivityCompleted:
		j.Result, j.ResultBase64, j.ContentType = payloadJSON(e.Result)
	default:
	}
	if e.Type.OfRow() {
		j.Ordinal = new(e.Ordinal)
	}
	return j
}

func utc(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC()
}
