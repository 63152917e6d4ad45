package historytest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/history"
	"github.com/umbelhq/umbel/outbox"
	"github.com/umbelhq/umbel/outbox/outboxtest"
)

// Property drives random operations on a store and on a [Model] side by side and compares what they return
// and, after each, every event and every row. It opens a backend for each of rapid's checks; see the flags
// -rapid.checks and -rapid.steps.
func Property(t *testing.T, open func(t *testing.T) Backend) {
	t.Helper()
	PropertyIn(t, nil, open)
}

// PropertyIn is [Property] with each check, its backend included, inside in.
func PropertyIn(t *testing.T, in outboxtest.In, open func(t *testing.T) Backend) {
	t.Helper()
	rapid.Check(t, func(rt *rapid.T) {
		in.Check(t, rt, func(t *testing.T) {
			b := open(t)
			if b.Close != nil {
				defer b.Close()
			}
			rt.Repeat(newMachine(t, rt, b).actions())
		})
	})
}

// machine is a store and a model that should be alike.
type machine struct {
	appended int // events, to tell them apart
	t        *testing.T
	b        Backend
	model    *Model
	flows    []*writer
}

// writer is a workflow with the positions of whoever wrote to it, the last of which is in force.
type writer struct {
	history.Workflow

	stored, modelled []history.Position
}

func newMachine(t *testing.T, rt *rapid.T, b Backend) *machine {
	m := &machine{t: t, b: b}
	m.model = NewModel(func() time.Time { return b.Now(t) })
	for _, wf := range []history.Workflow{{ID: "w", RunID: run1}, {Namespace: "n:1", ID: "w"}} {
		w := &writer{Workflow: wf}
		m.flows = append(m.flows, w)
		m.acquireFor(rt, w)
	}
	return m
}

func (m *machine) ctx() context.Context { return m.t.Context() }

func (m *machine) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"":              m.compare,
		"acquire":       func(rt *rapid.T) { m.acquireFor(rt, m.flow(rt)) },
		"dispatch":      m.dispatch,
		"append":        m.append,
		"complete":      m.complete,
		"complete many": m.completeMany,
		"fail attempt":  m.failAttempt,
		"claim":         m.claim,
		"end row":       m.endRow,
		"rearm":         m.rearm,
		"read":          m.read,
	}
}

func (m *machine) flow(rt *rapid.T) *writer { return rapid.SampledFrom(m.flows).Draw(rt, "workflow") }

// agree checks that both calls failed, with one code, or neither.
func agree(rt *rapid.T, what string, got, want error) {
	if umbel.CodeOf(got) != umbel.CodeOf(want) || (got == nil) != (want == nil) {
		rt.Fatalf("%s: %v, want %v", what, got, want)
	}
}

func agreeHead(rt *rapid.T, what string, got, want int64, gotErr, wantErr error) {
	agree(rt, what, gotErr, wantErr)
	if gotErr == nil && got != want {
		rt.Fatalf("%s: head %d, want %d", what, got, want)
	}
}

func (m *machine) acquireFor(rt *rapid.T, w *writer) {
	got, gotErr := m.b.Store.Acquire(m.ctx(), w.Workflow)
	want, wantErr := m.model.Acquire(m.ctx(), w.Workflow)
	agreeHead(rt, "acquire", got.Head, want.Head, gotErr, wantErr)
	w.stored, w.modelled = append(w.stored, got), append(w.modelled, want)
}

// position draws where to write: mostly at the head with the token in force, at times with an older token or
// another head.
func (m *machine) position(rt *rapid.T, w *writer, writes int) (stored, modelled history.Position) {
	i, head := len(w.stored)-1, m.model.log(w.Workflow).head
	if writes == 0 { // who writes nothing need not be asked where
		return history.Position{Token: w.stored[i].Token, Head: head}, history.Position{Token: w.modelled[i].Token, Head: head}
	}
	switch rapid.IntRange(0, 15).Draw(rt, "position") {
	case 14:
		i = rapid.IntRange(0, i).Draw(rt, "token")
	case 15:
		head = max(0, head+int64(rapid.SampledFrom([]int{-2, -1, 1, 2}).Draw(rt, "off by")))
	}
	stored, modelled = w.stored[i], w.modelled[i]
	stored.Head, modelled.Head = head, head
	return stored, modelled
}

// compare checks heads, events, rows and the store's own invariant.
func (m *machine) compare(rt *rapid.T) {
	for _, w := range m.flows {
		head, err := m.b.Store.Head(m.ctx(), w.Workflow)
		agreeHead(rt, "head", head, m.model.log(w.Workflow).head, err, nil)
		m.comparePage(rt, w, 1, 100_000)
		var got, want []string
		for r, err := range m.b.Store.Outbox().Scan(m.ctx(), w.Namespace, w.ID) {
			agree(rt, "scan", err, nil)
			got = append(got, lasting(r))
		}
		for r, err := range m.model.Outbox().Scan(m.ctx(), w.Namespace, w.ID) {
			agree(rt, "scan of the model", err, nil)
			want = append(want, lasting(r))
		}
		if !slices.Equal(got, want) {
			rt.Fatalf("rows of %+v:\n%v\nwant\n%v", w.Workflow, got, want)
		}
	}
	if m.b.Invariant != nil {
		if err := m.b.Invariant(m.t); err != nil {
			rt.Fatalf("invariant: %v", err)
		}
	}
}

// lasting renders what of a row this test compares: not its instants, which package outboxtest looks after,
// nor the attempt of a row that is resolved, which history has.
func lasting(r outbox.Row) string {
	if r.Status.Terminal() {
		r.Attempt = 0
	}
	return fmt.Sprintf("%d %s %d run %q on %q %q %q %q %q", r.Ordinal, r.Status, r.Attempt, r.RunID, r.TaskQueue, r.Node,
		r.ActivityType, r.Input.ContentType, r.Input.Data)
}

func (m *machine) comparePage(rt *rapid.T, w *writer, from int64, limit int) {
	got, gotErr := m.b.Store.Read(m.ctx(), w.Workflow, from, limit)
	want, wantErr := m.model.Read(m.ctx(), w.Workflow, from, limit)
	agree(rt, "read", gotErr, wantErr)
	if d := diff(want, got); d != "" {
		rt.Fatalf("%+v from %d, limit %d (-want +got):\n%s", w.Workflow, from, limit, d)
	}
}

func (m *machine) read(rt *rapid.T) {
	w := m.flow(rt)
	head := m.model.log(w.Workflow).head
	m.comparePage(rt, w, rapid.Int64Range(1, head+2).Draw(rt, "from"), rapid.IntRange(1, 50).Draw(rt, "limit"))
}

func (m *machine) dispatch(rt *rapid.T) {
	w := m.flow(rt)
	its := items(rapid.SampledFrom([]int{3, 1, 0, 12, 40}).Draw(rt, "items"))
	for i := range its {
		if rapid.IntRange(0, 5).Draw(rt, "other route") == 5 {
			its[i].TaskQueue = rapid.SampledFrom([]string{"q", "a:b"}).Draw(rt, "queue")
			its[i].Node = rapid.SampledFrom([]string{"", "n"}).Draw(rt, "node")
			its[i].Key = rapid.SampledFrom([]string{"", "label"}).Draw(rt, "key")
			its[i].Input.Data = rapid.SliceOfN(rapid.Byte(), 0, 5).Draw(rt, "input")
		}
	}
	stored, modelled := m.position(rt, w, len(its))
	got, gotErr := m.b.Store.Dispatch(m.ctx(), w.Workflow, stored, its)
	want, wantErr := m.model.Dispatch(m.ctx(), w.Workflow, modelled, its)
	agreeHead(rt, "dispatch", got, want, gotErr, wantErr)
}

func (m *machine) append(rt *rapid.T) {
	w := m.flow(rt)
	events := make([]umbel.Event, rapid.IntRange(0, 4).Draw(rt, "events"))
	for i := range events {
		// told from every other: a store may take an equal append at an equal position for one whose reply was lost
		m.appended++
		reason := rapid.SampledFrom([]string{"", "why", "\x00"}).Draw(rt, "reason") + strconv.Itoa(m.appended)
		events[i] = umbel.Event{Type: umbel.CancelRequested, Reason: reason}
	}
	_ = m.appendBoth(rt, w, events) // compared already
}

func (m *machine) appendBoth(rt *rapid.T, w *writer, events []umbel.Event) error {
	stored, modelled := m.position(rt, w, len(events))
	got, gotErr := m.b.Store.Append(m.ctx(), w.Workflow, stored, events)
	want, wantErr := m.model.Append(m.ctx(), w.Workflow, modelled, events)
	agreeHead(rt, "append", got, want, gotErr, wantErr)
	return gotErr
}

// ordinal draws one that exists, or the one after the last. In the latter case the attempt is 1.
func (m *machine) ordinal(rt *rapid.T, w *writer) (ordinal int64, attempts int) {
	ordinal = rapid.Int64Range(0, m.model.rows.Len(w.Namespace, w.ID)).Draw(rt, "ordinal")
	for _, e := range m.model.log(w.Workflow).entries {
		if e.Ordinal == ordinal && e.Type == umbel.ActivityStarted {
			attempts = e.Attempt
		}
	}
	return ordinal, max(attempts, 1)
}

func (m *machine) complete(rt *rapid.T) {
	w := m.flow(rt)
	o, attempts := m.ordinal(rt, w)
	m.completeOne(rt, w, o, rapid.IntRange(1, attempts).Draw(rt, "attempt"))
}

func (m *machine) completeMany(rt *rapid.T) {
	w := m.flow(rt)
	o, _ := m.ordinal(rt, w)
	for range rapid.IntRange(2, 20).Draw(rt, "count") {
		m.completeOne(rt, w, o, 1)
		o++
	}
}

func (m *machine) completeOne(rt *rapid.T, w *writer, o int64, attempt int) {
	c := success(o, attempt)
	if rapid.Bool().Draw(rt, "failure") {
		c = failure(o, attempt)
	}
	c.RunID = rapid.SampledFrom([]umbel.RunID{"", run1, run1, "run2"}).Draw(rt, "run")
	if m.model.rows.Len(w.Namespace, w.ID) == 0 {
		c.RunID = "" // a run that has no row yet may be another
	}
	stored, modelled := m.position(rt, w, 1)
	got, gotHead, gotErr := m.b.Store.Complete(m.ctx(), w.Workflow, stored, c)
	want, wantHead, wantErr := m.model.Complete(m.ctx(), w.Workflow, modelled, c)
	if wantErr != nil {
		// More than one thing may be wrong, and the order of the checks is the store's own.
		switch code := umbel.CodeOf(gotErr); code {
		case umbel.CodeConflict, umbel.CodeFenced, umbel.CodeNotFound:
		default:
			if gotErr != nil || got != history.Dropped {
				rt.Fatalf("complete of %d: %s, %v, want %v", o, got, gotErr, wantErr)
			}
		}
		return
	}
	agreeHead(rt, "complete", gotHead, wantHead, gotErr, wantErr)
	if got != want {
		rt.Fatalf("complete of %d: %s, want %s", o, got, want)
	}
}

// failAttempt starts the next attempt of an open ordinal, in history and then in the outbox.
func (m *machine) failAttempt(rt *rapid.T) {
	w := m.flow(rt)
	o, attempts := m.ordinal(rt, w)
	if o >= m.model.rows.Len(w.Namespace, w.ID) || attempts == umbel.MaxAttempts {
		return
	}
	err := m.appendBoth(rt, w, []umbel.Event{
		{Type: umbel.ActivityAttemptFailed, Row: umbel.Row{Ordinal: o, Attempt: attempts}, Failure: failure(o, attempts).Failure},
		started(o, attempts+1),
	})
	if err != nil {
		return
	}
	past := m.b.Now(m.t).Add(-1)
	for _, store := range []outbox.Store{m.b.Store.Outbox(), m.model.Outbox()} {
		agree(rt, "retry", store.Retry(m.ctx(), key(w.Workflow, o), attempts, past), nil)
	}
}

// claim claims whatever the store hands out; the model claims everything and puts the others back, since the
// order of claims is not this test's business.
func (m *machine) claim(rt *rapid.T) {
	got, err := m.b.Store.Outbox().Claim(m.ctx(), rapid.IntRange(1, 10).Draw(rt, "limit"))
	agree(rt, "claim", err, nil)
	all, err := m.model.Outbox().Claim(m.ctx(), 1_000_000)
	agree(rt, "claim", err, nil)
	taken := map[outbox.Key]bool{}
	for _, r := range got {
		taken[r.Key()] = true
	}
	var others []outbox.Row
	for _, r := range all {
		if !taken[r.Key()] {
			others = append(others, r)
		}
		delete(taken, r.Key())
	}
	for k := range taken {
		rt.Fatalf("%+v was claimed and is not due", k)
	}
	agree(rt, "re-arm", m.model.Outbox().Rearm(m.ctx(), others), nil)
}

func (m *machine) endRow(rt *rapid.T) {
	w := m.flow(rt)
	o, _ := m.ordinal(rt, w)
	how := rapid.SampledFrom([]func(outbox.Store, context.Context, outbox.Key) error{
		outbox.Store.Complete, outbox.Store.Fail, outbox.Store.Cancel,
	}).Draw(rt, "how")
	agree(rt, "end", how(m.b.Store.Outbox(), m.ctx(), key(w.Workflow, o)), how(m.model.Outbox(), m.ctx(), key(w.Workflow, o)))
}

func (m *machine) rearm(rt *rapid.T) {
	w := m.flow(rt)
	o, _ := m.ordinal(rt, w)
	r := outbox.Row{Namespace: w.Namespace, WorkflowID: w.ID, RunID: w.RunID, Ordinal: o, ActivityType: "act"}
	for _, store := range []outbox.Store{m.b.Store.Outbox(), m.model.Outbox()} {
		agree(rt, "re-arm", store.Rearm(m.ctx(), []outbox.Row{r}), nil)
	}
}
