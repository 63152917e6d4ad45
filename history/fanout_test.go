package history_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/history"
	"github.com/umbelhq/umbel/internal/testredis"
	"github.com/umbelhq/umbel/outbox"
	"github.com/umbelhq/umbel/outbox/outboxtest"
)

// lab is a history on one kind of Redis.
type lab struct {
	*testing.T

	h *history.Redis
	k outboxtest.Keyspace
}

// each runs f on every kind of Redis and checks what holds of any state at the end.
func each(t *testing.T, f func(l *lab)) {
	t.Helper()
	testredis.Each(t, func(t *testing.T, r *testredis.Redis) {
		t.Parallel()
		f(newLab(t, r))
	})
}

func newLab(t *testing.T, r *testredis.Redis) *lab {
	t.Helper()
	p := &place{Redis: r, shards: 4}
	h, k := p.store(t)
	return &lab{T: t, h: h, k: k}
}

func (l *lab) ok(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func (l *lab) refused(what string, err, as error) {
	l.Helper()
	if e, ok := errors.AsType[*umbel.Error](err); !ok || !errors.Is(e, as) {
		l.Fatalf("%s: %v, want %v", what, err, as)
	}
}

// check wants the invariants to hold.
func (l *lab) check() {
	l.Helper()
	l.ok(outboxtest.CheckRedis(l, l.k.Redis, l.k.Prefix))
	l.ok(checkHistory(l.T, l.k))
}

// plain are n rows of one type.
func plain(n int) []umbel.StagedRow {
	rows := make([]umbel.StagedRow, n)
	for i := range rows {
		rows[i] = umbel.StagedRow{Type: "act", Input: text(fmt.Sprintf("in %d", i))}
	}
	return rows
}

func text(s string) umbel.Payload { return umbel.Payload{ContentType: "text/plain", Data: []byte(s)} }

// begin is a start of rows in one call.
func begin(rows []umbel.StagedRow) history.Start {
	return history.Start{
		Namespace: "default", WorkflowID: "w", ID: umbel.NewRunID(), Rows: rows, Scheduled: int64(len(rows)),
		Digest: umbel.Digest{1, 2, 3},
	}
}

// start starts a run in one call.
func (l *lab) start(rows []umbel.StagedRow) *outbox.Run {
	l.Helper()
	s := begin(rows)
	got, err := l.h.Start(l.Context(), s)
	l.ok(err)
	if got.RunID != s.ID || got.Scheduled != s.Scheduled || got.Attached {
		l.Fatalf("started %+v, want run %s of %d", got, s.ID, s.Scheduled)
	}
	return l.run(s.WorkflowID, s.ID)
}

func (l *lab) run(wf umbel.WorkflowID, id umbel.RunID) *outbox.Run {
	l.Helper()
	run, err := l.h.Rows().Run(l.Context(), l.h.Rows().Shard("default", wf).Index, id)
	l.ok(err)
	if run == nil {
		l.Fatalf("no run %s", id)
	}
	return run
}

// settle ends rows, all in one step, and wants each accepted.
func (l *lab) settle(run *outbox.Run, rows ...history.Settled) {
	l.Helper()
	as, errs := l.h.Settle(l.Context(), []history.Batch{{Run: run, Rows: rows}})
	l.ok(errs[0])
	for i, a := range as[0].Rows {
		if a.Code != history.Accepted {
			l.Fatalf("row %d: %+v", rows[i].Ordinal, a)
		}
	}
}

func done(ordinal int64) history.Settled {
	return history.Settled{Ending: history.Completed, Ordinal: ordinal, Attempt: 1, Result: text(fmt.Sprintf("out %d", ordinal))}
}

func failed(ordinal int64, attempt int) history.Settled {
	return history.Settled{
		Ending: history.Failed, Ordinal: ordinal, Attempt: attempt,
		Failure: &umbel.Failure{Type: "Boom", Message: "no", Attempt: attempt},
	}
}

type reader func(from umbel.Cursor, limit int) (history.Page, error)

func (l *lab) recorded(run *outbox.Run, inputs bool) reader {
	return func(from umbel.Cursor, limit int) (history.Page, error) {
		return l.h.Results(l.Context(), run, from, limit, inputs)
	}
}

func (l *lab) ordered(run *outbox.Run, inputs bool) reader {
	return func(from umbel.Cursor, limit int) (history.Page, error) {
		return l.h.Ordered(l.Context(), run, from, limit, inputs)
	}
}

// pages reads up to the end, or until nothing more comes, limit results at a time.
func (l *lab) pages(read reader, from umbel.Cursor, limit int) []umbel.Result[umbel.Payload] {
	l.Helper()
	var all []umbel.Result[umbel.Payload]
	for range 100_000 {
		p, err := read(from, limit)
		l.ok(err)
		if len(p.Results) > limit {
			l.Fatalf("a page of %d has %d results", limit, len(p.Results))
		}
		all, from = append(all, p.Results...), p.Next
		if p.End || len(p.Results) == 0 {
			return all
		}
	}
	l.Fatal("the pages have no end")
	return nil
}

// brief renders results.
func brief(rs []umbel.Result[umbel.Payload]) []string {
	out := make([]string, len(rs))
	for i, r := range rs {
		out[i] = fmt.Sprintf("%d %s %d %s %s %s %v", r.Ordinal, r.Type, r.Attempt, r.Key, r.Status, r.Value.Data, r.Err)
	}
	return out
}
