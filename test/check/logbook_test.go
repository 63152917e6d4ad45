package check

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/umbelhq/umbel"
)

// logbook is what was seen while a schedule was played. Instants are by Redis's clock.
type logbook struct {
	book     sync.Mutex
	problems []string
	trouble  []time.Time // when something went wrong
	starts   map[umbel.WorkflowID]time.Time
	runs     map[umbel.RunID]int // index of the plan
	known    map[umbel.WorkflowID]umbel.RunID
	cancels  map[umbel.WorkflowID]time.Time // when the cancel had returned
	results  map[umbel.WorkflowID][]umbel.Result[umbel.Payload]
	claims   map[umbel.Token]*claim
	verdicts []verdict
}

// claim is a row that a worker was handed.
type claim struct {
	token    umbel.Token
	run      umbel.RunID
	ordinal  int64
	attempt  int
	at       time.Time // when it was claimed
	worker   string
	held     time.Time // when the last renewal was sent that was answered with held
	reported time.Time // when it was first reported
	released bool      // a report gave it back, or tried to
	ran      []*execution
}

// execution is a handler that ran.
type execution struct {
	token umbel.Token
	begun time.Time
	out   *umbel.Payload
	err   error
	over  bool
}

// verdict is what a server said of a report.
type verdict struct {
	umbel.Verdict

	item umbel.ReportItem
}

func (l *logbook) init() {
	l.starts, l.cancels = map[umbel.WorkflowID]time.Time{}, map[umbel.WorkflowID]time.Time{}
	l.runs, l.known = map[umbel.RunID]int{}, map[umbel.WorkflowID]umbel.RunID{}
	l.results = map[umbel.WorkflowID][]umbel.Result[umbel.Payload]{}
	l.claims = map[umbel.Token]*claim{}
}

func (l *logbook) wrongf(format string, args ...any) {
	l.book.Lock()
	defer l.book.Unlock()
	l.problems = append(l.problems, fmt.Sprintf(format, args...))
}

func (w *world) troubled() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trouble = append(w.trouble, w.now())
}

// starting notes when a run is about to be started.
func (w *world) starting(p runPlan) {
	w.book.Lock()
	defer w.book.Unlock()
	w.starts[p.ID] = w.now().Truncate(time.Millisecond)
}

// know notes the run of a plan.
func (w *world) know(i int, p runPlan, id umbel.RunID) {
	w.book.Lock()
	defer w.book.Unlock()
	w.runs[id], w.known[p.ID] = i, id
}

func (w *world) committed(r umbel.CommitRequest, rep umbel.CommitReply) {
	if rep.Scheduled != r.Scheduled {
		w.wrongf("%s: %d rows were committed, the reply says %d", r.WorkflowID, r.Scheduled, rep.Scheduled)
	}
}

func (w *world) cancelled(p runPlan) {
	w.book.Lock()
	defer w.book.Unlock()
	w.cancels[p.ID] = w.now()
}

func (w *world) gathered(p runPlan, results []umbel.Result[umbel.Payload]) {
	w.book.Lock()
	defer w.book.Unlock()
	w.results[p.ID] = results
}

// handed notes what a poll brought, and checks what can be checked at once.
func (w *world) handed(r umbel.PollRequest, rep umbel.PollReply) {
	for _, row := range rep.Rows {
		part := strings.SplitN(string(row.Token), ".", 8)
		ms, err := strconv.ParseInt(part[5], 36, 64)
		if err != nil {
			w.wrongf("token %s: %v", row.Token, err)
		}
		c := &claim{
			token: row.Token, run: row.RunID, ordinal: row.Ordinal, attempt: row.Attempt, at: time.UnixMilli(ms), worker: r.Worker,
		}
		if row.Node != "" && row.Node != r.Node || row.TaskQueue != r.TaskQueue || row.Namespace != r.Namespace {
			w.wrongf("%s:%d of %s, %s, %q was handed to %s: %+v", row.WorkflowID, row.Ordinal, row.Namespace, row.TaskQueue, row.Node, r.Worker, r)
		}
		w.book.Lock()
		before := w.claims[row.Token]
		w.claims[row.Token] = c
		w.book.Unlock()
		if before != nil {
			w.wrongf("%s:%d was handed out twice in one claim: %s", row.WorkflowID, row.Ordinal, row.Token)
		}
	}
}

func (w *world) renewed(sent time.Time, r umbel.RenewRequest, rep umbel.RenewReply) {
	w.book.Lock()
	defer w.book.Unlock()
	for i, s := range rep.States {
		w.tally.add("hold", strconv.Itoa(int(s)))
		if c := w.claims[r.Tokens[i]]; c != nil && s == umbel.Held {
			if at := sent.Add(w.Skew); at.After(c.held) {
				c.held = at
			}
		}
	}
}

func (w *world) reporting(r umbel.ReportRequest) {
	w.book.Lock()
	defer w.book.Unlock()
	for _, it := range r.Items {
		if c := w.claims[it.Token]; c != nil {
			if c.reported.IsZero() {
				c.reported = w.now().Truncate(time.Millisecond) // as claims are
			}
			c.released = c.released || it.Outcome == umbel.OutcomeReleased
		}
	}
}

func (w *world) reported(r umbel.ReportRequest, rep umbel.ReportReply) {
	w.book.Lock()
	defer w.book.Unlock()
	for i, v := range rep.Verdicts {
		w.tally.add("verdict", [...]string{"", "recorded", "retrying", "released", "dropped", "stale", "refused"}[v.Code])
		w.verdicts = append(w.verdicts, verdict{v, r.Items[i]})
	}
}

// plan finds what a row is to do.
func (w *world) plan(info umbel.Info) (rowPlan, int) {
	for i, p := range w.Runs {
		if p.ID == info.WorkflowID {
			return p.Rows[info.Ordinal], i
		}
	}
	w.wrongf("a row of an unknown workflow runs: %+v", info)
	return rowPlan{}, 0
}

// started notes that a handler begins.
func (w *world) started(h *hand, info umbel.Info, kind string, in umbel.Payload, p rowPlan, run int) *execution {
	if want := w.input(run, p); in.ContentType != want.ContentType || !bytes.Equal(in.Data, want.Data) {
		w.wrongf("%s: the input is %q, want %q", info.DispatchKey, in, want)
	}
	if kind != p.Type || info.Type != p.Type || p.Node != "" && p.Node != crew[h.place].node {
		w.wrongf("%s of type %s on node %q runs as %s on %s", info.DispatchKey, p.Type, p.Node, kind, h.caller.name)
	}
	e := &execution{token: info.Token, begun: w.now()}
	w.book.Lock()
	defer w.book.Unlock()
	if c := w.claims[info.Token]; c != nil {
		c.ran = append(c.ran, e)
	}
	return e
}

func (w *world) ended(e *execution, out *umbel.Payload, err error) {
	w.book.Lock()
	defer w.book.Unlock()
	e.over, e.out, e.err = true, out, err
}
