package check

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/server"
	"github.com/umbelhq/umbel/test/witness"
)

// story is the history of a run, as it is checked.
type story struct {
	w        *world
	plan     runPlan
	id       umbel.RunID
	events   []umbel.Event
	started  map[try]umbel.Event
	failed   map[try]umbel.Event // attempts that were followed by another
	terminal map[int64]umbel.Event
	claims   map[int64][]*claim // in the order in which they were made
}

type try struct {
	ordinal int64
	attempt int
}

func (s *story) wrongf(format string, args ...any) {
	s.w.wrongf("%s: "+format, append([]any{s.plan.ID}, args...)...)
}

// verify holds what was seen, and what is there now, to the promises. Nothing else runs any more.
func (w *world) verify() {
	if left := w.leftClaimed(); len(left) > 0 {
		w.wrongf("something is claimed at the end: %v", left)
	}
	rdb := w.redis.Client()
	rdb.AddHook(&link{w: w})
	engine, err := server.Open(w.t.Context(), rdb, server.Config{Logger: quiet})
	if err != nil {
		w.wrongf("no server can be opened at the end: %v", err)
		return
	}
	defer engine.Close()
	for i, p := range w.Runs {
		id := w.known[p.ID]
		if id == "" {
			continue // it could not be started, which was noted
		}
		s := &story{
			w: w, plan: p, id: id, started: map[try]umbel.Event{}, failed: map[try]umbel.Event{}, terminal: map[int64]umbel.Event{},
			claims: map[int64][]*claim{},
		}
		s.read(engine)
		s.counts(engine)
		s.scheduled(i)
		s.results()
		s.owned()
		s.handedOut()
		s.verdicts()
		s.cancels()
	}
	for _, c := range w.claims {
		if _, ok := w.runs[c.run]; !ok {
			w.wrongf("a row of a run that nobody started was claimed: %+v", *c)
		}
	}
}

// read reads the history: promises 6, 7, 8 and 10.
func (s *story) read(e umbel.Engine) {
	check := witness.NewChecker()
	for head := int64(1); int64(len(s.events)) < head; {
		page, err := e.History(s.w.t.Context(), umbel.HistoryRequest{
			Namespace: namespace, WorkflowID: s.plan.ID, From: int64(len(s.events)) + 1,
		})
		if err != nil || len(page.Events) == 0 {
			s.wrongf("history ends at %d of %d: %v", len(s.events), head, err)
			break
		}
		s.events, head = append(s.events, page.Events...), page.Head
	}
	for _, ev := range s.events {
		check.Event(ev)
		at := try{ev.Ordinal, ev.Attempt}
		switch {
		case ev.Type.Terminal():
			if _, ok := s.terminal[ev.Ordinal]; !ok {
				s.terminal[ev.Ordinal] = ev
			}
		case ev.Type == umbel.ActivityStarted:
			s.started[at] = ev
		case ev.Type == umbel.ActivityAttemptFailed:
			s.failed[at] = ev
		}
	}
	check.End(int64(len(s.plan.Rows)))
	for _, p := range check.Problems[:min(len(check.Problems), 5)] {
		s.wrongf("%s", p)
	}
	for _, c := range s.w.claims {
		if c.run == s.id {
			s.claims[c.ordinal] = append(s.claims[c.ordinal], c)
		}
	}
	for _, cs := range s.claims {
		slices.SortFunc(cs, func(a, b *claim) int { return a.at.Compare(b.at) })
	}
}

// counts compares the books with the history: promise 10.
func (s *story) counts(e umbel.Engine) {
	d, err := e.Describe(s.w.t.Context(), umbel.DescribeRequest{Namespace: namespace, WorkflowID: s.plan.ID})
	if err != nil {
		s.wrongf("it cannot be described: %v", err)
		return
	}
	want := umbel.Counts{Scheduled: int64(len(s.plan.Rows))}
	for _, ev := range s.terminal {
		switch ev.Type {
		case umbel.ActivityCompleted:
			want.Completed++
		case umbel.ActivityFailed:
			want.Failed++
		default:
			want.Cancelled++
		}
	}
	byCancel := slices.ContainsFunc(s.events, func(ev umbel.Event) bool { return ev.Type == umbel.CancelRequested })
	status := umbel.StatusFailed
	switch {
	case byCancel || want.Cancelled == want.Scheduled:
		status = umbel.StatusCancelled
	case want.Completed == want.Scheduled:
		status = umbel.StatusCompleted
	}
	if d.Counts != want || d.Status != status || d.RunID != s.id {
		s.wrongf("run %s is %s with %+v, by its history %s is %s with %+v", d.RunID, d.Status, d.Counts, s.id, status, want)
	}
	s.w.tally.add("run", string(d.Status))
}

// scheduled compares what was dispatched with what was asked for: promises 1 and 14.
func (s *story) scheduled(run int) {
	for _, ev := range s.events {
		if ev.Type != umbel.ActivityScheduled || ev.Ordinal >= int64(len(s.plan.Rows)) {
			continue
		}
		p := s.plan.Rows[ev.Ordinal]
		in := s.w.input(run, p)
		row := ev.Row
		if row.Type != p.Type || ev.Node != p.Node || row.Input.ContentType != in.ContentType || !bytes.Equal(row.Input.Data, in.Data) {
			s.wrongf("ordinal %d was scheduled as %+v, want %+v", ev.Ordinal, ev, p)
		}
	}
}

// results compares what a client read with the history.
func (s *story) results() {
	results, ok := s.w.results[s.plan.ID]
	if !ok {
		return // they could not be read, which was noted
	}
	seen := map[int64]bool{}
	run := s.w.runs[s.id]
	for _, r := range results {
		ev := s.terminal[r.Ordinal]
		want := map[umbel.Status]umbel.EventType{
			umbel.StatusCompleted: umbel.ActivityCompleted, umbel.StatusFailed: umbel.ActivityFailed,
			umbel.StatusCancelled: umbel.ActivityCancelled,
		}[r.Status]
		if seen[r.Ordinal] || ev.Type != want || ev.Attempt != r.Attempt || !bytes.Equal(ev.Result.Data, r.Value.Data) {
			s.wrongf("the result of ordinal %d is %+v, history has %+v (again: %t)", r.Ordinal, r, ev, seen[r.Ordinal])
		}
		seen[r.Ordinal] = true
		if r.Ordinal < int64(len(s.plan.Rows)) {
			if in := s.w.input(run, s.plan.Rows[r.Ordinal]); !bytes.Equal(in.Data, r.Input.Data) {
				s.wrongf("the input of ordinal %d came back as %q, want %q", r.Ordinal, r.Input.Data, in.Data)
			}
		}
		if f, ok := errors.AsType[*umbel.Failure](r.Err); ok && f.Message != ev.Failure.Message {
			s.wrongf("ordinal %d failed with %q, history has %q", r.Ordinal, f.Message, ev.Failure.Message)
		}
	}
	if len(seen) != len(s.plan.Rows) {
		s.wrongf("%d results of %d rows", len(seen), len(s.plan.Rows))
	}
}

// owned wants every outcome in history to be one that its claim brought, and failures only of the claim that held the
// row: promises 6, 7 and 13.
func (s *story) owned() {
	for _, ev := range s.events {
		if ev.Type != umbel.ActivityCompleted && ev.Type != umbel.ActivityFailed && ev.Type != umbel.ActivityAttemptFailed {
			continue
		}
		var of *claim
		for _, c := range s.claims[ev.Ordinal] {
			if c.attempt == ev.Attempt && c.worker == ev.Worker && c.at.Equal(ev.ClaimedAt) {
				of = c
			}
			if ev.Type != umbel.ActivityCompleted && c.at.After(ev.ClaimedAt) && c.at.Before(ev.At) {
				s.wrongf("%s of ordinal %d, attempt %d is of the claim of %s by %s, but at %s %s claimed the row", ev.Type, ev.Ordinal,
					ev.Attempt, s.clock(ev.ClaimedAt), ev.Worker, s.clock(c.at), c.worker)
			}
		}
		if ev.Failure != nil && ev.Failure.Type == umbel.FailureLeaseExpired {
			s.lapsed(ev, of)
			continue
		}
		if of == nil {
			s.wrongf("event %d: %s of ordinal %d, attempt %d: %s never had such a claim", ev.Seq, ev.Type, ev.Ordinal, ev.Attempt, ev.Worker)
			continue
		}
		said := slices.ContainsFunc(of.ran, func(e *execution) bool {
			switch {
			case ev.Type == umbel.ActivityCompleted:
				return e.out != nil && bytes.Equal(e.out.Data, ev.Result.Data) && e.out.ContentType == ev.Result.ContentType
			case ev.Failure.Type == umbel.FailureTimedOut:
				return true
			default:
				return e.err != nil && strings.Contains(ev.Failure.Message, e.err.Error())
			}
		})
		if !said {
			s.wrongf("event %d: no handler said so: %+v", ev.Seq, ev)
		}
	}
}

// lapsed checks that the lease had really been left to lapse.
func (s *story) lapsed(ev umbel.Event, of *claim) {
	s.w.tally.add("lapse")
	from := ev.ClaimedAt
	if of != nil && of.held.After(from) {
		from = of.held
	}
	if ev.At.Before(from.Add(lease).Truncate(time.Millisecond)) {
		s.wrongf("the lease of ordinal %d, attempt %d was held at %s and lapsed at %s", ev.Ordinal, ev.Attempt, s.clock(from), s.clock(ev.At))
	}
}

// handedOut checks every claim that a worker saw: promises 3, 5, 12 and 13.
func (s *story) handedOut() {
	for o, cs := range s.claims {
		for i, c := range cs {
			if end, ok := s.terminal[o]; ok && c.at.After(end.At) {
				s.wrongf("ordinal %d was claimed at %s by %s, and has been resolved since %s by %s", o, s.clock(c.at), c.worker, s.clock(end.At), end.Type)
			}
			if st, ok := s.started[try{o, c.attempt}]; !ok || c.at.Before(st.At.Truncate(time.Millisecond)) {
				s.wrongf("ordinal %d was claimed as attempt %d at %s, which has started at %s", o, c.attempt, s.clock(c.at), s.clock(st.At))
			}
			if due := s.due(o, c.attempt); c.at.Before(due) {
				s.wrongf("attempt %d of ordinal %d was claimed at %s, and due at %s", c.attempt, o, s.clock(c.at), s.clock(due))
			}
			if len(c.ran) > 1 {
				s.wrongf("one claim of ordinal %d ran %d times: %s", o, len(c.ran), c.token)
			}
			for _, later := range cs[i+1:] {
				s.exclusive(c, later)
			}
		}
	}
}

// exclusive checks two claims of a row, one after the other.
func (s *story) exclusive(c, later *claim) {
	reported := !c.reported.IsZero() && !c.reported.After(later.at)
	until := c.held
	if until.IsZero() && !slices.ContainsFunc(s.w.trouble, func(t time.Time) bool {
		return t.After(c.at.Add(-time.Second)) && !t.After(later.at.Add(time.Millisecond))
	}) {
		until = c.at // a reply that did not arrive may have given the row back
	}
	if !until.IsZero() && !reported && later.at.Before(until.Add(lease).Truncate(time.Millisecond)) {
		s.wrongf("ordinal %d was held by %s at %s, and claimed by %s at %s", c.ordinal, c.worker, s.clock(until), later.worker, s.clock(later.at))
	}
	if !c.held.IsZero() && !c.released && c.attempt == later.attempt {
		s.wrongf("attempt %d of ordinal %d was held by %s at %s, never released, and claimed again by %s at %s", c.attempt, c.ordinal,
			c.worker, s.clock(c.held), later.worker, s.clock(later.at))
	}
}

// due is when an attempt may be claimed at the earliest.
func (s *story) due(o int64, attempt int) time.Time {
	if attempt > 1 {
		return s.failed[try{o, attempt - 1}].NextVisible
	}
	p := s.plan.Rows[o]
	due := s.w.starts[s.plan.ID].Add(p.Delay)
	if nb := s.w.notBefore(p); p.NotBefore > 0 && nb.After(due) {
		return nb
	}
	return due
}

// verdicts compares what workers were told with the history.
func (s *story) verdicts() {
	recorded := map[int64]int{}
	for _, v := range s.w.verdicts {
		c := s.w.claims[v.item.Token]
		if c == nil || c.run != s.id {
			continue
		}
		end := s.terminal[c.ordinal]
		_, retried := s.failed[try{c.ordinal, c.attempt}]
		switch v.Code {
		case umbel.Recorded:
			recorded[c.ordinal]++
			if end.Attempt != c.attempt || end.Worker != c.worker || !bytes.Equal(end.Result.Data, v.item.Result.Data) {
				s.wrongf("ordinal %d was said to be recorded for %s, attempt %d; history has %+v", c.ordinal, c.worker, c.attempt, end)
			}
		case umbel.Retrying:
			if !retried {
				s.wrongf("attempt %d of ordinal %d was said to be retried; history has nothing of it", c.attempt, c.ordinal)
			}
		case umbel.Dropped:
			if end.Type == "" || end.Attempt != v.Attempt && end.Type != umbel.ActivityCancelled {
				s.wrongf("ordinal %d was said to be recorded with attempt %d; history has %+v", c.ordinal, v.Attempt, end)
			}
		case umbel.Refused:
			s.wrongf("a report of ordinal %d was refused: %v", c.ordinal, v.Err)
		case umbel.Released, umbel.Stale:
		}
	}
	for o, n := range recorded {
		if n > 1 {
			s.wrongf("ordinal %d was said to be recorded %d times", o, n)
		}
	}
}

// cancels wants all that was cancelled to be resolved when the cancel returned: promise 12.
func (s *story) cancels() {
	at, ok := s.w.cancels[s.plan.ID]
	if !ok {
		return
	}
	for o := range s.plan.Rows {
		if end := s.terminal[int64(o)]; (len(s.plan.CancelRows) == 0 || slices.Contains(s.plan.CancelRows, int64(o))) && end.At.After(at) {
			s.wrongf("ordinal %d was cancelled at %s, and resolved at %s", o, s.clock(at), s.clock(end.At))
		}
	}
}

// clock is an instant since the schedule began.
func (s *story) clock(t time.Time) string { return t.Sub(s.w.begun.Add(s.w.Skew)).String() }
