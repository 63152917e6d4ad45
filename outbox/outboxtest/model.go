package outboxtest

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/outbox"
)

// Model is the reference: an outbox.Store of one map and one sort, to be obviously right and nothing else.
// It has one shard. It is safe for concurrent use.
type Model struct {
	now func() time.Time

	mu    sync.Mutex
	flows map[flow][]*outbox.Row // of each workflow, by ordinal
}

type flow struct {
	namespace string
	id        umbel.WorkflowID
}

var _ outbox.Store = (*Model)(nil)

// NewModel returns an empty model with a clock.
func NewModel(now func() time.Time) *Model {
	return &Model{now: now, flows: map[flow][]*outbox.Row{}}
}

// clock is the store's time in the precision in which it keeps instants.
func (m *Model) clock() time.Time { return m.now().UTC().Truncate(time.Millisecond) }

// due returns at, or now for the zero time.
func (m *Model) due(at time.Time) time.Time {
	if at.IsZero() {
		return m.clock()
	}
	return outbox.CeilMilli(at)
}

func (m *Model) find(key outbox.Key) *outbox.Row {
	rows := m.flows[flow{cmp.Or(key.Namespace, umbel.DefaultNamespace), key.WorkflowID}]
	if key.Ordinal >= int64(len(rows)) {
		return nil
	}
	return rows[key.Ordinal]
}

func copyOf(r *outbox.Row) outbox.Row {
	c := *r
	c.Input.Data = bytes.Clone(c.Input.Data)
	return c
}

// Append implements outbox.Store.
func (m *Model) Append(ctx context.Context, rows []outbox.Row) error {
	if err := check(ctx, func() error { return validateRows(rows) }); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	added := map[flow][]*outbox.Row{}
	for _, r := range rows {
		r = r.WithDefaults()
		f := flow{r.Namespace, r.WorkflowID}
		n := int64(len(m.flows[f]) + len(added[f]))
		switch {
		case r.Ordinal > n:
			return &umbel.Error{Code: umbel.CodeGap, WorkflowID: r.WorkflowID, Reason: "rows are missing before these", NotApplied: true}
		case r.Ordinal < n:
			continue
		}
		r.VisibleAfter = m.due(r.VisibleAfter)
		r.ClaimedAt = time.Time{}
		r = copyOf(&r)
		added[f] = append(added[f], &r)
	}
	for f := range added {
		routes := map[[3]string]bool{}
		for _, r := range slices.Concat(m.flows[f], added[f]) {
			routes[[3]string{r.TaskQueue, r.Node, r.ActivityType}] = true
		}
		if len(routes) > umbel.MaxRoutes {
			return umbel.Limit("rows", int64(len(routes)), "routes", umbel.MaxRoutes)
		}
	}
	for f := range added {
		m.flows[f] = append(m.flows[f], added[f]...)
	}
	return nil
}

// Claim implements outbox.Store.
func (m *Model) Claim(ctx context.Context, limit int) ([]outbox.Row, error) {
	if err := check(ctx, func() error { return validateLimit(limit) }); err != nil {
		return nil, err
	}
	return m.claim(limit, func(outbox.Row) bool { return true }), nil
}

// ClaimScoped implements outbox.Store.
func (m *Model) ClaimScoped(ctx context.Context, scope outbox.Scope, limit int) ([]outbox.Row, error) {
	if err := check(ctx, func() error { return cmp.Or(scope.Validate(), validateLimit(limit)) }); err != nil {
		return nil, err
	}
	return m.claim(limit, scope.Admits), nil
}

func (m *Model) claim(limit int, admits func(outbox.Row) bool) []outbox.Row {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock()
	due := m.all(func(r outbox.Row) bool {
		return r.Status == outbox.Pending && !r.VisibleAfter.After(now) && admits(r)
	})
	var claimed []outbox.Row
	for _, r := range due[:min(limit, len(due))] {
		r.Status, r.ClaimedAt = outbox.Claimed, now
		claimed = append(claimed, copyOf(r))
	}
	return claimed
}

// all returns the rows that is says yes to, in the order of claims. Namespaces break the ties that the order
// leaves, to have the same result every time.
func (m *Model) all(is func(outbox.Row) bool) []*outbox.Row {
	var rows []*outbox.Row
	for _, flow := range m.flows {
		for _, r := range flow {
			if is(*r) {
				rows = append(rows, r)
			}
		}
	}
	slices.SortFunc(rows, func(a, b *outbox.Row) int {
		return cmp.Or(outbox.Compare(*a, *b), cmp.Compare(a.Namespace, b.Namespace))
	})
	return rows
}

// RearmStale implements outbox.Store.
func (m *Model) RearmStale(ctx context.Context, olderThan time.Time, limit int, visible time.Time) ([]outbox.Row, error) {
	if err := check(ctx, func() error { return validateLimit(limit) }); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	stale := m.stale(olderThan)
	var back []outbox.Row
	for _, r := range stale[:min(limit, len(stale))] {
		m.putBack(r, r.Attempt, visible)
		back = append(back, copyOf(r))
	}
	return back, nil
}

func (m *Model) stale(olderThan time.Time) []*outbox.Row {
	return m.all(func(r outbox.Row) bool {
		return r.Status == outbox.Claimed && !r.ClaimedAt.IsZero() && r.ClaimedAt.Before(olderThan)
	})
}

func (m *Model) putBack(r *outbox.Row, attempt int, visible time.Time) {
	r.Status, r.Attempt, r.VisibleAfter, r.ClaimedAt = outbox.Pending, attempt, m.due(visible), time.Time{}
}

// Rearm implements outbox.Store.
func (m *Model) Rearm(ctx context.Context, rows []outbox.Row) error {
	if err := check(ctx, func() error { return validateKeysOf(rows) }); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, given := range rows {
		if r := m.find(given.Key()); r != nil && !r.Status.Terminal() {
			m.putBack(r, r.Attempt, given.VisibleAfter)
		}
	}
	return nil
}

// Complete implements outbox.Store.
func (m *Model) Complete(ctx context.Context, key outbox.Key) error {
	return m.end(ctx, key, outbox.Done)
}

// Fail implements outbox.Store.
func (m *Model) Fail(ctx context.Context, key outbox.Key) error {
	return m.end(ctx, key, outbox.Failed)
}

// Cancel implements outbox.Store.
func (m *Model) Cancel(ctx context.Context, key outbox.Key) error {
	return m.end(ctx, key, outbox.Cancelled)
}

func (m *Model) end(ctx context.Context, key outbox.Key, as outbox.Status) error {
	if err := check(ctx, func() error { return validateKey(key) }); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.find(key); r != nil && !r.Status.Terminal() {
		r.Status, r.ClaimedAt = as, time.Time{}
	}
	return nil
}

// Retry implements outbox.Store.
func (m *Model) Retry(ctx context.Context, key outbox.Key, attempt int, visible time.Time) error {
	if err := check(ctx, func() error { return cmp.Or(validateKey(key), validateAttempt(attempt)) }); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.find(key); r != nil && !r.Status.Terminal() {
		m.putBack(r, attempt, visible)
	}
	return nil
}

// Get implements outbox.Store.
func (m *Model) Get(ctx context.Context, key outbox.Key) (outbox.Row, error) {
	if err := check(ctx, func() error { return validateKey(key) }); err != nil {
		return outbox.Row{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.find(key)
	if r == nil {
		return outbox.Row{}, &umbel.Error{Code: umbel.CodeNotFound, WorkflowID: key.WorkflowID, Reason: "no such row", NotApplied: true}
	}
	return copyOf(r), nil
}

// Scan implements outbox.Store.
func (m *Model) Scan(ctx context.Context, namespace string, id umbel.WorkflowID) iter.Seq2[outbox.Row, error] {
	return func(yield func(outbox.Row, error) bool) {
		key := outbox.Key{Namespace: namespace, WorkflowID: id}
		if err := check(ctx, func() error { return validateKey(key) }); err != nil {
			yield(outbox.Row{}, err)
			return
		}
		for _, r := range m.rows(cmp.Or(namespace, umbel.DefaultNamespace), id) {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (m *Model) rows(namespace string, id umbel.WorkflowID) []outbox.Row {
	m.mu.Lock()
	defer m.mu.Unlock()
	var rows []outbox.Row
	for _, r := range m.flows[flow{namespace, id}] {
		rows = append(rows, copyOf(r))
	}
	return rows
}

// Len returns the number of rows of a workflow.
func (m *Model) Len(namespace string, id umbel.WorkflowID) int64 {
	return int64(len(m.rows(cmp.Or(namespace, umbel.DefaultNamespace), id)))
}

// ForgetClaimedAt makes a claimed row one without a ClaimedAt, see [Backend].
func (m *Model) ForgetClaimedAt(key outbox.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.find(key); r != nil && r.Status == outbox.Claimed {
		r.ClaimedAt = time.Time{}
	}
}

// Dump renders everything in the model.
func (m *Model) Dump() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b bytes.Buffer
	for _, f := range slices.SortedFunc(maps.Keys(m.flows), func(x, y flow) int {
		return cmp.Or(cmp.Compare(x.namespace, y.namespace), cmp.Compare(x.id, y.id))
	}) {
		for _, r := range m.flows[f] {
			render(&b, *r)
		}
	}
	return b.String()
}
