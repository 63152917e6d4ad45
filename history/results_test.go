package history_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/history"
	"github.com/umbelhq/umbel/internal/testredis"
	"github.com/umbelhq/umbel/outbox"
)

func (l *lab) want(what string, got []umbel.Result[umbel.Payload], want ...string) {
	l.Helper()
	if d := gocmp.Diff(want, brief(got)); d != "" {
		l.Fatalf("%s (-want +got):\n%s", what, d)
	}
}

func TestResults(t *testing.T) {
	t.Parallel()
	each(t, func(l *lab) {
		run := l.start(plain(10))
		if p, err := l.h.Results(l.Context(), run, "", 10, false); err != nil || len(p.Results) > 0 || !p.End {
			l.Fatalf("of a run without results: %+v, %v", p, err)
		}
		_, err := l.h.Rows().Claim(l.Context(), 4)
		l.ok(err)
		l.settle(run, done(7), done(2))
		l.settle(run, history.Settled{Ending: history.Retried, Ordinal: 3, Attempt: 1, Failure: &umbel.Failure{Message: "again"}})
		l.settle(run, failed(3, 2), done(0))
		n, err := l.h.CancelRows(l.Context(), run, []int64{5, 7, 99, 5})
		if l.ok(err); n != 1 {
			l.Fatalf("cancelled %d rows", n)
		}
		all := []string{
			"7 act 1  completed out 7 <nil>", "2 act 1  completed out 2 <nil>",
			"3 act 2  failed  no", "0 act 1  completed out 0 <nil>",
			"5 act 0  cancelled  ordinal 5: " + umbel.ErrCancelled.Error(),
		}
		// the script writes the groups of a call in their order
		got := l.pages(l.recorded(run, false), "", 100)
		l.want("as recorded", got, all...)
		for limit := 1; limit < 7; limit++ {
			l.want("as recorded, by pages", l.pages(l.recorded(run, false), "", limit), all...)
		}
		for i, r := range got { // from any place, in the midst of an entry too
			l.want("from a cursor", l.pages(l.recorded(run, false), r.Cursor, 2), all[i+1:]...)
		}
		l.want("by ordinal", l.pages(l.ordered(run, false), "", 100), all[3])
		l.settle(run, done(1))
		l.want("by ordinal, later", l.pages(l.ordered(run, false), "", 2), all[3], "1 act 1  completed out 1 <nil>", all[1], all[2])
		last := got[len(got)-1].Cursor
		l.want("later", l.pages(l.recorded(run, false), last, 10), "1 act 1  completed out 1 <nil>")
		l.check()
	})
}

func TestOrderedGoesOn(t *testing.T) {
	t.Parallel()
	each(t, func(l *lab) {
		run := l.start(plain(1200))
		var from umbel.Cursor
		var all []umbel.Result[umbel.Payload]
		for o := int64(1199); o >= 0; o -= 3 { // backwards, so that most stop at once
			l.settle(run, done(o), done(o-1), done(o-2))
			if o%300 != 2 {
				continue
			}
			p, err := l.h.Ordered(l.Context(), run, from, 10_000, false)
			l.ok(err)
			all, from = append(all, p.Results...), p.Next
		}
		p, err := l.h.Ordered(l.Context(), run, from, 10_000, false)
		l.ok(err)
		all = append(all, p.Results...)
		if len(all) != 1200 || !p.End {
			l.Fatalf("%d results, end %v", len(all), p.End)
		}
		for i, r := range all {
			if r.Ordinal != int64(i) || string(r.Value.Data) != fmt.Sprintf("out %d", i) {
				l.Fatalf("result %d is of %d: %s", i, r.Ordinal, r.Value.Data)
			}
		}
		for _, i := range []int{0, 1, 7, 499, 500, 1198} {
			rest := l.pages(l.ordered(run, false), all[i].Cursor, 333)
			if len(rest) != 1199-i || rest[0].Ordinal != int64(i)+1 {
				l.Fatalf("%d results after ordinal %d", len(rest), i)
			}
		}
		l.check()
	})
}

// A run of several routes, with keys and with large inputs: pages end by bytes.
func TestResultsWithInputs(t *testing.T) {
	t.Parallel()
	each(t, func(l *lab) {
		rows := plain(9)
		for i := range rows {
			rows[i].Type, rows[i].Key = fmt.Sprintf("t%d", i%2), fmt.Sprintf("k%d", i)
			if i >= 3 && i < 8 {
				rows[i].Input.Data = bytes.Repeat([]byte{byte(i)}, umbel.MaxPayloadBytes)
			}
		}
		s := begin(nil)
		s.Scheduled = 9
		next := int64(0)
		for _, r := range rows {
			var err error
			next, err = l.h.Rows().Stage(l.Context(), staging(s), next, []umbel.StagedRow{r})
			l.ok(err)
		}
		_, err := l.h.Start(l.Context(), s)
		l.ok(err)
		run := l.run(s.WorkflowID, s.ID)
		for o := range int64(9) {
			items, err := l.h.Rows().Items(l.Context(), run, []int64{o})
			l.ok(err)
			r := done(o)
			r.Route = items[0].Route
			l.settle(run, r)
		}
		for _, read := range []reader{l.recorded(run, true), l.ordered(run, true)} {
			p, err := read("", 100)
			l.ok(err)
			if len(p.Results) != 4 || p.End { // three small ones, and the first that alone makes half a page
				l.Fatalf("the first page has %d results, end %v", len(p.Results), p.End)
			}
			all := l.pages(read, "", 100)
			if len(all) != 9 {
				l.Fatalf("%d results", len(all))
			}
			for i, r := range all {
				if r.Type != rows[i].Type || r.Key != rows[i].Key || !bytes.Equal(r.Input.Data, rows[i].Input.Data) {
					l.Errorf("result %d: %s %s, input of %d bytes", i, r.Type, r.Key, len(r.Input.Data))
				}
			}
		}
		events, err := l.h.Read(l.Context(), history.Workflow{ID: "w"}, 1, 1000)
		l.ok(err)
		if len(events) != 1+2*4 { // WorkflowStarted, and pairs up to the page's bytes
			l.Errorf("the first page of history has %d events", len(events))
		}
		l.check()
	})
}

// A run that is cancelled: what was open is cancelled in one entry, at any N and from any place in it.
func TestResultsOfACancelledRun(t *testing.T) {
	t.Parallel()
	each(t, func(l *lab) {
		for _, n := range []int{1, 7, 8, 9, 13, 1000} {
			s := begin(plain(n))
			s.WorkflowID = umbel.WorkflowID(fmt.Sprintf("w%d", n))
			_, err := l.h.Start(l.Context(), s)
			l.ok(err)
			run := l.run(s.WorkflowID, s.ID)
			if n > 5 {
				l.settle(run, done(5), failed(1, 1))
				_, err := l.h.CancelRows(l.Context(), run, []int64{3})
				l.ok(err)
			}
			cancelled, err := l.h.Cancel(l.Context(), run, "enough")
			l.ok(err)
			want := map[int64]umbel.Status{5: umbel.StatusCompleted, 1: umbel.StatusFailed}
			if n > 5 && cancelled != int64(n)-3 || n == 1 && cancelled != 1 {
				l.Errorf("cancelled %d of %d", cancelled, n)
			}
			for _, read := range []reader{l.recorded(run, false), l.ordered(run, false)} {
				for _, limit := range []int{3, 10_000} {
					all := l.pages(read, "", limit)
					seen := map[int64]bool{}
					for _, r := range all {
						status := umbel.StatusCancelled
						if w, ok := want[r.Ordinal]; ok && n > 5 {
							status = w
						}
						if seen[r.Ordinal] || r.Status != status || r.Ordinal >= int64(n) {
							l.Fatalf("N=%d: ordinal %d, %s, seen %v", n, r.Ordinal, r.Status, seen[r.Ordinal])
						}
						seen[r.Ordinal] = true
					}
					if len(all) != n {
						l.Fatalf("N=%d: %d results", n, len(all))
					}
					mid := n / 2
					if rest := l.pages(read, all[mid].Cursor, limit); len(rest) != n-mid-1 {
						l.Fatalf("N=%d: %d results after %d", n, len(rest), mid)
					}
				}
			}
		}
		l.check()
	})
}

func TestCursors_Case57(t *testing.T) {
	t.Parallel()
	each(t, func(l *lab) {
		run := l.start(plain(20))
		for o := range int64(10) {
			l.settle(run, done(o))
		}
		recorded, ordered := l.pages(l.recorded(run, false), "", 100), l.pages(l.ordered(run, false), "", 100)
		good, byOrdinal := recorded[4].Cursor, ordered[4].Cursor
		id := string(run.ID)
		for _, c := range []umbel.Cursor{
			"x", ".", "..", "a.b.c", umbel.Cursor(id), umbel.Cursor(id + ".1"), umbel.Cursor(id + ".x.00000000"),
			umbel.Cursor(id + ".-1.00000000"), umbel.Cursor(id + ".1.zz"), umbel.Cursor(id + ".o.-1"), umbel.Cursor(id + ".o.x"),
			umbel.Cursor(".1.00000000"), umbel.Cursor(id + ".99999999999999999999.00000000"), umbel.Cursor(strings.Repeat("9", 10_000)),
			umbel.Cursor("other" + string(good)), umbel.Cursor("other" + string(byOrdinal)),
		} {
			_, err := l.h.Results(l.Context(), run, c, 10, false)
			l.refused(fmt.Sprintf("results from %.40q", c), err, umbel.ErrInvalid)
			_, err = l.h.Ordered(l.Context(), run, c, 10, false)
			l.refused(fmt.Sprintf("ordered from %.40q", c), err, umbel.ErrInvalid)
		}
		_, err := l.h.Results(l.Context(), run, byOrdinal, 10, false)
		l.refused("results from a place by ordinal", err, umbel.ErrInvalid)
		_, err = l.h.Ordered(l.Context(), run, good, 10, false)
		l.refused("ordered from a place as recorded", err, umbel.ErrInvalid)

		// Redis is taken back to an earlier moment, and goes on from there with other outcomes
		k := l.h.Rows().Shard("default", "w").Workflow("default", "w")
		entries, err := l.k.Redis.XRange(l.Context(), k.History, "-", "+").Result()
		l.ok(err)
		for _, e := range entries[4:] {
			l.ok(l.k.Redis.XDel(l.Context(), k.History, e.ID).Err())
		}
		_, err = l.h.Results(l.Context(), run, good, 10, false)
		l.refused("from a place that is gone", err, umbel.ErrCursorLost)
		p, err := l.h.Results(l.Context(), run, recorded[1].Cursor, 10, false)
		if l.ok(err); len(p.Results) != 0 {
			l.Fatalf("after the last that is left: %+v", brief(p.Results))
		}
		p, err = l.h.Results(l.Context(), run, "", 10, false)
		l.ok(err)
		if got, want := brief(p.Results), brief(recorded[:2]); !slices.Equal(got, want) {
			l.Fatalf("from the start: %v, want %v", got, want)
		}
	})
}

// A page of results is bounded in bytes, and so is what is read for it: large results are not read by the dozen.
func TestLargeResultsAreReadAsNeeded(t *testing.T) {
	t.Parallel()
	r := testredis.Real(t)
	l := newLab(t, r)
	run := l.start(plain(40))
	_, err := l.h.Rows().Claim(l.Context(), 40)
	l.ok(err)
	const size = 1 << 20
	for o := range int64(40) {
		d := done(o)
		d.Result.Data = bytes.Repeat([]byte{'x'}, size)
		l.settle(run, d)
	}
	sent := func() int64 {
		var n int64
		for line := range strings.SplitSeq(r.Client.Info(l.Context(), "stats").Val(), "\r\n") {
			if v, ok := strings.CutPrefix(line, "total_net_output_bytes:"); ok {
				n, err = strconv.ParseInt(v, 10, 64)
				l.ok(err)
			}
		}
		return n
	}
	for order, read := range map[string]func(context.Context, *outbox.Run, umbel.Cursor, int, bool) (history.Page, error){
		"as recorded": l.h.Results, "by ordinal": l.h.Ordered,
	} {
		before, n := sent(), 0
		for from, end := umbel.Cursor(""), false; !end; {
			p, err := read(l.Context(), run, from, 100, false)
			l.ok(err)
			n, from, end = n+len(p.Results), p.Next, p.End
		}
		if n != 40 {
			t.Errorf("%s: %d results", order, n)
		}
		// where a page goes on, its first entry is read to check the cursor and to go on in it; the index reads all once
		if read := sent() - before; read > 4*40*size {
			t.Errorf("%s: %d bytes were sent for results of %d", order, read, 40*size)
		}
	}
}

// The index remembers how far it has read, also where it found nothing, and refuses what it has no room for.
func TestOrderedIndex(t *testing.T) {
	t.Parallel()
	each(t, func(l *lab) {
		run := l.start(plain(3))
		k := l.h.Rows().Shard("default", "w").Workflow("default", "w")
		_, err := l.h.Ordered(l.Context(), run, "", 10, false)
		l.ok(err)
		if at, err := l.k.Redis.HGet(l.Context(), run.Keys.Record(), "indexed").Int64(); err != nil || at != 7 {
			l.Errorf("the index reaches to %d, %v, want 7", at, err)
		}
		for o, head := range []int64{1<<40 - 2, 1<<40 - 1} { // what comes next is at the limit, then beyond it
			l.ok(l.k.Redis.HSet(l.Context(), k.Record, "head", head).Err())
			l.settle(run, done(int64(o)))
			p, err := l.h.Ordered(l.Context(), run, "", 10, false)
			if o == 1 {
				l.refused("beyond the index", err, umbel.ErrLimit)
			} else if l.ok(err); len(p.Results) != 1 {
				l.Errorf("at the limit: %d results", len(p.Results))
			}
		}
		if all := l.pages(l.recorded(run, false), "", 10); len(all) != 2 {
			l.Errorf("as recorded: %d results", len(all))
		}
	})
}
