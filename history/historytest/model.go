package historytest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/history"
	"github.com/umbelhq/umbel/outbox"
	"github.com/umbelhq/umbel/outbox/outboxtest"
)

// Model is the reference: a history.Store of one slice of events for each workflow, over an
// [outboxtest.Model]. It reads the whole history to decide, as no real store may. It is safe for concurrent
// use.
type Model struct {
	now  func() time.Time
	rows *outboxtest.Model

	mu     sync.Mutex
	logs   map[name]*log
	tokens int
}

type name struct {
	namespace string
	id        umbel.WorkflowID
}

// log is one workflow's history.
type log struct {
	token   history.Token
	head    int64
	entries []entry
}

// entry is an event and the run that was named when it was written.
type entry struct {
	umbel.Event

	run umbel.RunID
}

var _ history.Store = (*Model)(nil)

// NewModel returns an empty model with a clock.
func NewModel(now func() time.Time) *Model {
	return &Model{now: now, rows: outboxtest.NewModel(now), logs: map[name]*log{}}
}

func (m *Model) log(wf history.Workflow) *log {
	n := name{cmp.Or(wf.Namespace, umbel.DefaultNamespace), wf.ID}
	if m.logs[n] == nil {
		m.logs[n] = &log{}
	}
	return m.logs[n]
}

// Acquire implements history.Store.
func (m *Model) Acquire(ctx context.Context, wf history.Workflow) (history.Position, error) {
	if err := check(ctx, wf); err != nil {
		return history.Position{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tokens++
	l := m.log(wf)
	l.token = history.Token("token " + strconv.Itoa(m.tokens))
	return history.Position{Token: l.token, Head: l.head}, nil
}

// admit checks a position and that more events fit.
func (l *log) admit(wf history.Workflow, at history.Position, events int) error {
	switch {
	case l.token == "" || at.Token != l.token:
		return &umbel.Error{Code: umbel.CodeFenced, WorkflowID: wf.ID, Reason: "somebody else holds the write token", NotApplied: true}
	case at.Head != l.head:
		return &umbel.Error{Code: umbel.CodeConflict, WorkflowID: wf.ID, Reason: fmt.Sprintf("the head is %d", l.head), NotApplied: true}
	case l.head > history.MaxSeq-int64(events):
		return umbel.Limit("sequence number", l.head, "events", history.MaxSeq)
	}
	return nil
}

func (m *Model) add(l *log, wf history.Workflow, events ...umbel.Event) {
	for _, e := range events {
		l.head++
		e.Seq, e.At = l.head, m.now().UTC().Truncate(time.Millisecond)
		e.Input.Data, e.Result.Data = bytes.Clone(e.Input.Data), bytes.Clone(e.Result.Data)
		e.Failure = e.Failure.Clip()
		l.entries = append(l.entries, entry{e, wf.RunID})
	}
}

// Append implements history.Store.
func (m *Model) Append(ctx context.Context, wf history.Workflow, at history.Position, events []umbel.Event) (int64, error) {
	if err := check(ctx, wf); err != nil {
		return 0, err
	}
	if len(events) > umbel.MaxPageItems {
		return 0, umbel.Limit("append", int64(len(events)), "events of a call", umbel.MaxPageItems)
	}
	for _, e := range events {
		if e.Type.Terminal() {
			return 0, umbel.Invalid("event type", string(e.Type), "must be written by Complete")
		}
		if err := cmp.Or(e.Input.Validate("input"), e.Result.Validate("result")); err != nil {
			return 0, err
		}
	}
	bytes := 0
	for _, e := range events {
		bytes += len(e.Input.Data) + len(e.Reason)
	}
	if len(events) > 1 && bytes > umbel.MaxStageBytes {
		return 0, umbel.Limit("append", int64(bytes), "bytes of the events of a call", umbel.MaxStageBytes)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.log(wf)
	if err := l.admit(wf, at, len(events)); err != nil {
		return 0, err
	}
	m.add(l, wf, events...)
	return l.head, nil
}

// Dispatch implements history.Store.
func (m *Model) Dispatch(ctx context.Context, wf history.Workflow, at history.Position, items []history.Item) (int64, error) {
	if err := check(ctx, wf); err != nil {
		return 0, err
	}
	if err := validateItems(items); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.log(wf)
	if err := l.admit(wf, at, 2*len(items)); err != nil {
		return 0, err
	}
	var rows []outbox.Row
	var events []umbel.Event
	first := m.rows.Len(wf.Namespace, wf.ID)
	for i, it := range items {
		o := first + int64(i)
		rows = append(rows, outbox.Row{
			Namespace: wf.Namespace, WorkflowID: wf.ID, RunID: wf.RunID, Ordinal: o,
			TaskQueue: it.TaskQueue, Node: it.Node, ActivityType: it.ActivityType, Input: it.Input,
		})
		events = append(events, scheduled(o, it), started(o, 1))
	}
	if err := m.rows.Append(ctx, rows); err != nil {
		return 0, err
	}
	m.add(l, wf, events...)
	return l.head, nil
}

func scheduled(ordinal int64, it history.Item) umbel.Event {
	return umbel.Event{
		Type:      umbel.ActivityScheduled,
		Row:       umbel.Row{Ordinal: ordinal, Type: it.ActivityType, Key: it.Key, Input: it.Input},
		TaskQueue: cmp.Or(it.TaskQueue, umbel.DefaultTaskQueue), Node: it.Node,
	}
}

func started(ordinal int64, attempt int) umbel.Event {
	return umbel.Event{Type: umbel.ActivityStarted, Row: umbel.Row{Ordinal: ordinal, Attempt: attempt}}
}

func terminal(c history.Completion) umbel.Event {
	e := umbel.Event{
		Type: umbel.ActivityCompleted, Row: umbel.Row{Ordinal: c.Ordinal, Attempt: c.Attempt},
		Result: c.Result, Failure: c.Failure,
	}
	if c.Failure != nil {
		e.Type, e.Result = umbel.ActivityFailed, umbel.Payload{}
	}
	return e
}

// Complete implements history.Store.
func (m *Model) Complete(ctx context.Context, wf history.Workflow, at history.Position, c history.Completion) (history.Outcome, int64, error) {
	if err := check(ctx, wf); err != nil {
		return "", 0, err
	}
	if err := validateCompletion(c); err != nil {
		return "", 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.log(wf)
	if err := l.admit(wf, at, 0); err != nil {
		return "", 0, err
	}
	if wf.RunID != "" && c.RunID != "" && wf.RunID != c.RunID {
		return history.Dropped, l.head, nil
	}
	known, begun := false, false
	for _, e := range l.entries {
		if e.Ordinal != c.Ordinal || e.run != "" && c.RunID != "" && e.run != c.RunID {
			continue
		}
		if e.Type.Terminal() {
			return history.Dropped, l.head, nil
		}
		known = known || e.Type == umbel.ActivityScheduled
		begun = begun || e.Type == umbel.ActivityStarted && e.Attempt == c.Attempt
	}
	switch {
	case !known:
		return "", 0, &umbel.Error{Code: umbel.CodeNotFound, WorkflowID: wf.ID, Reason: "no such row", NotApplied: true}
	case !begun:
		return "", 0, umbel.Invalid("attempt", strconv.Itoa(c.Attempt), "has not been started")
	}
	if err := l.admit(wf, at, 1); err != nil {
		return "", 0, err
	}
	m.add(l, wf, terminal(c))
	key, end := outbox.Key{Namespace: wf.Namespace, WorkflowID: wf.ID, Ordinal: c.Ordinal}, m.rows.Complete
	if c.Failure != nil {
		end = m.rows.Fail
	}
	if err := end(ctx, key); err != nil {
		return "", 0, err
	}
	return history.Recorded, l.head, nil
}

// Head implements history.Store.
func (m *Model) Head(ctx context.Context, wf history.Workflow) (int64, error) {
	if err := check(ctx, wf); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.log(wf).head, nil
}

// Read implements history.Store.
func (m *Model) Read(ctx context.Context, wf history.Workflow, from int64, limit int) ([]umbel.Event, error) {
	if err := check(ctx, wf); err != nil {
		return nil, err
	}
	if limit < 1 {
		return nil, umbel.Invalid("limit", strconv.Itoa(limit), "must be at least 1")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var page []umbel.Event
	for _, e := range m.log(wf).entries {
		if e.Seq >= from && len(page) < limit {
			e.Input.Data, e.Result.Data = bytes.Clone(e.Input.Data), bytes.Clone(e.Result.Data)
			e.Failure = e.Failure.Clip()
			page = append(page, e.Event)
		}
	}
	return page, nil
}

// Outbox implements history.Store.
func (m *Model) Outbox() outbox.Store { return m.rows }

// SetHead makes n the head, as if there had been that many events, see [Backend].
func (m *Model) SetHead(wf history.Workflow, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log(wf).head = n
}

// Dump renders everything in the model but the write tokens.
func (m *Model) Dump() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b bytes.Buffer
	b.WriteString(m.rows.Dump())
	for _, n := range slices.SortedFunc(maps.Keys(m.logs), func(x, y name) int {
		return cmp.Or(cmp.Compare(x.namespace, y.namespace), cmp.Compare(x.id, y.id))
	}) {
		if l := m.logs[n]; l.head > 0 {
			_, _ = fmt.Fprintf(&b, "%+v head %d\n", n, l.head)
			for _, e := range l.entries {
				_, _ = fmt.Fprintf(&b, "%+v %+v\n", e, e.Failure)
			}
		}
	}
	return b.String()
}

// check refuses a call whose context has ended, then one of an invalid workflow.
func check(ctx context.Context, wf history.Workflow) error {
	if ctx.Err() != nil {
		return &umbel.Error{Code: umbel.CodeUnavailable, WorkflowID: wf.ID, NotApplied: true, Err: context.Cause(ctx)}
	}
	return cmp.Or(
		umbel.ValidateLabel("namespace", wf.Namespace),
		umbel.ValidateName("workflow ID", string(wf.ID)),
		umbel.ValidateLabel("run ID", string(wf.RunID)),
	)
}

func validateItems(items []history.Item) error {
	for _, it := range items {
		if err := cmp.Or(
			umbel.ValidateName("activity type", it.ActivityType),
			umbel.ValidateLabel("task queue", it.TaskQueue),
			umbel.ValidateLabel("node", it.Node),
			umbel.ValidateLabel("key", it.Key),
			it.Input.Validate("input"),
		); err != nil {
			return err
		}
	}
	return nil
}

func validateCompletion(c history.Completion) error {
	if c.Ordinal < 0 || c.Ordinal > umbel.MaxOrdinal {
		return umbel.Invalid("ordinal", strconv.FormatInt(c.Ordinal, 10), "must be from 0 to below 2^24")
	}
	if c.Attempt < 1 || c.Attempt > umbel.MaxAttempts {
		return umbel.Invalid("attempt", strconv.Itoa(c.Attempt), "must be from 1 to "+strconv.Itoa(umbel.MaxAttempts))
	}
	return cmp.Or(umbel.ValidateLabel("run ID", string(c.RunID)), c.Result.Validate("result"))
}
