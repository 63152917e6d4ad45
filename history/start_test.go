package history_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/history"
	"github.com/umbelhq/umbel/internal/testredis"
	"github.com/umbelhq/umbel/outbox"
)

func staging(s history.Start) outbox.Staging {
	return outbox.Staging{Namespace: s.Namespace, WorkflowID: s.WorkflowID, ID: s.ID, TTL: s.TTL}
}

// stage stages rows in pieces and wants each to be taken; twice, as if the reply was lost (CASE 60).
func (l *lab) stage(s history.Start, rows []umbel.StagedRow, piece int) {
	l.Helper()
	for at := 0; at < len(rows); at += piece {
		part := rows[at:min(at+piece, len(rows))]
		for range 2 {
			next, err := l.h.Rows().Stage(l.Context(), staging(s), int64(at), part)
			l.ok(err)
			if next != int64(at+len(part)) {
				l.Fatalf("staged %d rows at %d, goes on at %d", len(part), at, next)
			}
		}
	}
}

func (l *lab) begun(s history.Start, attached bool, want umbel.RunID) {
	l.Helper()
	got, err := l.h.Start(l.Context(), s)
	l.ok(err)
	if got.RunID != want || got.Attached != attached {
		l.Fatalf("start led to %+v, want run %s, attached %v", got, want, attached)
	}
}

func TestStartAgain_Promise2(t *testing.T) {
	t.Parallel()
	for _, small := range []bool{true, false} {
		t.Run(fmt.Sprintf("small=%v", small), func(t *testing.T) {
			t.Parallel()
			each(t, func(l *lab) {
				again := func() history.Start {
					s := begin(plain(2500))
					if !small {
						l.stage(s, s.Rows[:2400], 700)
						s.Rows = s.Rows[2400:]
					}
					return s
				}
				first := again()
				l.begun(first, false, first.ID)
				keys, err := l.k.Names(l.Context())
				l.ok(err)
				for range 2 { // its reply was lost
					l.begun(first, false, first.ID)
				}
				same := again()
				l.begun(same, true, first.ID)
				other := again()
				other.Digest[0]++
				_, err = l.h.Start(l.Context(), other)
				l.refused("another digest", err, umbel.ErrAlreadyExists)
				other = again()
				other.Digest[0]++
				other.OnExisting = umbel.Existing
				l.begun(other, true, first.ID)
				reject := again()
				reject.OnExisting = umbel.Reject
				_, err = l.h.Start(l.Context(), reject)
				l.refused("reject", err, umbel.ErrAlreadyExists)
				after, err := l.k.Names(l.Context())
				l.ok(err)
				if fmt.Sprint(keys) != fmt.Sprint(after) {
					l.Errorf("repeats left keys behind:\n%v\n%v", keys, after)
				}
				st, err := l.h.Rows().Standing(l.Context(), l.run("w", first.ID))
				l.ok(err)
				if st.Counts.Scheduled != 2500 || st.Counts.Pending != 2500 {
					l.Errorf("counts %+v", st.Counts)
				}
				l.check()
			})
		})
	}
}

func TestDiscard_Case40(t *testing.T) {
	t.Parallel()
	each(t, func(l *lab) {
		before, err := l.k.Names(l.Context())
		l.ok(err)
		s := begin(nil)
		rows := plain(3000)
		for i := range rows {
			rows[i].TaskQueue, rows[i].Delay = fmt.Sprintf("q%d", i%3), time.Duration(i%5)*time.Hour
		}
		l.stage(s, rows, 1000)
		l.ok(l.h.Rows().Discard(l.Context(), staging(s)))
		l.ok(l.h.Rows().Discard(l.Context(), staging(s))) // again
		after, err := l.k.Names(l.Context())
		l.ok(err)
		if fmt.Sprint(before) != fmt.Sprint(after) {
			l.Errorf("left: %v", after)
		}
		s.Scheduled = 3000
		_, err = l.h.Start(l.Context(), s)
		l.refused("what was discarded", err, umbel.ErrStagingLost)
		run := l.start(plain(3))
		l.ok(l.h.Rows().Discard(l.Context(), outbox.Staging{Namespace: "default", WorkflowID: "w", ID: run.ID}))
		if got := l.run("w", run.ID); got == nil {
			l.Error("a run was discarded")
		}
		l.check()
	})
}

// A staging that pauses longer than it lives is lost, and says so; a gap is no less.
func TestStagingLost_Case60(t *testing.T) {
	t.Parallel()
	each(t, func(l *lab) {
		s := begin(plain(100))
		s.Scheduled = 200
		_, err := l.h.Rows().Stage(l.Context(), staging(s), 50, s.Rows)
		l.refused("a gap", err, umbel.ErrStagingLost)
		l.stage(s, s.Rows, 100)
		sh := l.h.Rows().Shard("default", "w")
		for _, key := range []string{sh.Run(string(s.ID)).Record(), sh.Run(string(s.ID)).Inputs(), sh.Run(string(s.ID)).Due(0)} {
			if live, err := l.k.Redis.PTTL(l.Context(), key).Result(); err != nil || live <= 0 {
				l.Errorf("%s lives for %v, %v", key, live, err)
			}
			l.ok(l.k.Redis.PExpire(l.Context(), key, time.Millisecond).Err())
		}
		for l.k.Redis.Exists(l.Context(), sh.Run(string(s.ID)).Record()).Val() == 1 {
			time.Sleep(time.Millisecond)
		}
		_, err = l.h.Rows().Stage(l.Context(), staging(s), 100, s.Rows)
		l.refused("what follows", err, umbel.ErrStagingLost)
		_, err = l.h.Start(l.Context(), s)
		l.refused("the commit", err, umbel.ErrStagingLost)
		l.check()
	})
}

// Nothing is left of a run but its results, whatever it was in the midst of.
func TestCancelMany_Case20(t *testing.T) {
	t.Parallel()
	each(t, func(l *lab) {
		s := begin(nil)
		rows := plain(20_000)
		for i := range rows {
			rows[i].TaskQueue = fmt.Sprintf("q%d", i%2)
		}
		l.stage(s, rows, 5000)
		s.Scheduled = 20_000
		l.begun(s, false, s.ID)
		run := l.run("w", s.ID)
		held, err := l.h.Rows().Claim(l.Context(), 700)
		l.ok(err)
		l.check()
		n, err := l.h.Cancel(l.Context(), run, "")
		l.ok(err)
		if n != 20_000 || len(held) != 700 {
			l.Errorf("cancelled %d, of which %d were claimed", n, len(held))
		}
		l.check()
		if rows, err := l.h.Rows().Claim(l.Context(), 10); err != nil || len(rows) > 0 {
			l.Errorf("claimed %d rows of a cancelled run: %v", len(rows), err)
		}
		as, errs := l.h.Settle(l.Context(), []history.Batch{{Run: run, Rows: []history.Settled{done(held[0].Ordinal)}}})
		l.ok(errs[0])
		if a := as[0]; a.Closed != umbel.StatusCancelled || a.Rows[0] != (history.Answer{Code: history.CodeDropped}) {
			l.Errorf("a report after the cancel: %+v", a)
		}
		if rest := l.pages(l.recorded(run, false), "", 3000); len(rest) != 20_000 {
			l.Errorf("%d results", len(rest))
		}
	})
}

// An ordinal that ended inside a span is never claimed.
func TestEndedInASpan_Case61(t *testing.T) {
	t.Parallel()
	each(t, func(l *lab) {
		run := l.start(plain(50))
		l.settle(run, done(10), done(11), failed(12, 1))
		_, err := l.h.CancelRows(l.Context(), run, []int64{0, 20, 49})
		l.ok(err)
		ended := map[int64]bool{10: true, 11: true, 12: true, 0: true, 20: true, 49: true}
		l.check()
		rows, err := l.h.Rows().Claim(l.Context(), 100)
		l.ok(err)
		for _, r := range rows {
			if ended[r.Ordinal] {
				l.Errorf("claimed %d", r.Ordinal)
			}
		}
		if len(rows) != 44 {
			l.Errorf("claimed %d rows", len(rows))
		}
		l.check()
	})
}

// A million rows that are far from due go in one step.
func TestCancelAMillion_Case63(t *testing.T) {
	t.Parallel()
	l := newLab(t, testredis.Shared(t))
	const n, piece = 1_000_000, 10_000
	s := begin(nil)
	rows := make([]umbel.StagedRow, piece)
	for i := range rows {
		rows[i] = umbel.StagedRow{Type: "act", Delay: 30 * 24 * time.Hour, Input: umbel.Payload{Data: []byte("x")}}
	}
	for at := int64(0); at < n; at += piece {
		_, err := l.h.Rows().Stage(l.Context(), staging(s), at, rows)
		l.ok(err)
	}
	s.Scheduled = n
	l.begun(s, false, s.ID)
	run := l.run("w", s.ID)
	before := time.Now()
	cancelled, err := l.h.Cancel(l.Context(), run, "")
	l.ok(err)
	if took := time.Since(before); cancelled != n || took > time.Second {
		l.Errorf("cancelled %d in %v", cancelled, took)
	}
	for _, key := range []string{run.Keys.Due(0), run.Keys.Rows(), run.Shard.Backlog(), run.Shard.Ready()} {
		if l.k.Redis.Exists(l.Context(), key).Val() != 0 {
			l.Errorf("%s is left", key)
		}
	}
	l.check()
}

// A staging ID that is used again for other rows, as many of them: they are not taken for this start's.
func TestStartCommitsItsOwnRows(t *testing.T) {
	t.Parallel()
	each(t, func(l *lab) {
		others := map[string]func(rows []umbel.StagedRow){
			"another input":        func(rows []umbel.StagedRow) { rows[1].Input.Data = []byte("IN 1") },
			"another key":          func(rows []umbel.StagedRow) { rows[0].Key = "k" },
			"another type":         func(rows []umbel.StagedRow) { rows[2].Type = "other" },
			"another content type": func(rows []umbel.StagedRow) { rows[0].Input.ContentType = umbel.ContentTypeJSON },
			"another delay":        func(rows []umbel.StagedRow) { rows[2].Delay = time.Second },
			"another size":         func(rows []umbel.StagedRow) { rows[2].Input.Data = make([]byte, 100_000) },
		}
		for what, edit := range others {
			s := begin(plain(3))
			s.WorkflowID = umbel.WorkflowID(what)
			theirs := plain(3)
			edit(theirs)
			call, err := l.h.Rows().StageCall(staging(s), theirs)
			l.ok(err)
			_, err = l.h.Rows().Scripts().Run(l.Context(), call.Call)
			l.ok(err)
			_, err = l.h.Start(l.Context(), s)
			l.refused(what, err, umbel.ErrStagingLost)
			b, err := l.h.Begin(l.Context(), s.Namespace, s.WorkflowID)
			if l.ok(err); b.RunID != "" {
				l.Errorf("%s: became run %s", what, b.RunID)
			}
		}
		s := begin(plain(3)) // its own, whose commit was lost
		call, err := l.h.Rows().StageCall(staging(s), plain(3))
		l.ok(err)
		_, err = l.h.Rows().Scripts().Run(l.Context(), call.Call)
		l.ok(err)
		l.begun(s, false, s.ID)
		l.check()
	})
}
