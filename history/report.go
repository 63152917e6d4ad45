package history

import (
	"context"
	"strconv"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/lua"
	"github.com/umbelhq/umbel/outbox"
)

// Ending is how an attempt ends.
type Ending int

// The endings.
const (
	Completed Ending = iota + 1
	Failed           // for good
	Retried          // failed, and tried again
	Released         // given back: no attempt is spent, nothing is written
	Cancelled        // the row is, whoever holds it
)

// Settled is how the attempt of one row ends.
type Settled struct {
	Ending    Ending
	Nonce     string // the claim that reports; empty: whichever
	Route     int
	Ordinal   int64
	Attempt   int // from 1
	Worker    string
	ClaimedAt time.Time
	Result    umbel.Payload
	Failure   *umbel.Failure
	Wait      time.Duration // Retried: until the next attempt
}

// Batch is rows of one run that are settled in one step: at most outbox.MaxSettle, each ordinal once.
type Batch struct {
	Run   *outbox.Run
	Lapse string // nonce of the claim that lapses: it must have passed its deadline
	Rows  []Settled
}

// Code says what became of a [Settled].
type Code byte

// The codes. Accepted rows are as they were asked to be.
const (
	Accepted Code = iota
	CodeDropped
	CodeStale
	CodeAbsent
)

// Answer is what became of one row; Attempt is the attempt that was recorded if it was dropped, 0 if it was
// cancelled.
type Answer struct {
	Code    Code
	Attempt int
}

// Answers is what became of a batch.
type Answers struct {
	Rows   []Answer
	Closed umbel.Status // the run's status if it is closed now, else ""
	Live   bool         // a lapse that was none: the lease was renewed
}

// Settle settles batches, each in one step of its own, in one round trip.
func (h *Redis) Settle(ctx context.Context, batches []Batch) ([]Answers, []error) {
	all := make([]outbox.Settlement, len(batches))
	where := make([][]int, len(batches)) // of each batch, the index of the row of each item in order
	out, errs := make([]Answers, len(batches)), make([]error, len(batches))
	for i, b := range batches {
		s := outbox.Settlement{Run: b.Run, Lapse: b.Lapse, Closings: closings}
		if s.Groups, where[i], errs[i] = groups(b.Rows); errs[i] != nil {
			s.Groups = nil
		}
		all[i] = s
	}
	replies, failed := h.outbox.SettleAll(ctx, all)
	for i, b := range batches {
		if errs[i] == nil {
			errs[i] = failed[i]
		}
		if errs[i] == nil {
			out[i], errs[i] = h.answers(ctx, b, all[i].Groups, where[i], replies[i])
		}
	}
	return out, errs
}

// groups puts together what the script takes together: rows of one claim, attempt, route and ending.
func groups(rows []Settled) ([]lua.Group, []int, error) {
	type key struct {
		ending  Ending
		nonce   string
		attempt int
		route   int
	}
	index := map[key]int{}
	var out []lua.Group
	var members [][]int
	for i, r := range rows {
		k := key{r.Ending, r.Nonce, r.Attempt, r.Route}
		g, ok := index[k]
		if !ok {
			g = len(out)
			index[k] = g
			out = append(out, lua.Group{
				Verb: verbs[r.Ending], Nonce: r.Nonce, Attempt: r.Attempt, Route: r.Route,
				Preamble: encodePreamble(r.Worker, r.ClaimedAt),
			})
			members = append(members, nil)
			if r.Ending == Cancelled {
				out[g].Preamble = nil
			}
		}
		it, err := r.item()
		if err != nil {
			return nil, nil, err
		}
		out[g].Items = append(out[g].Items, it)
		members[g] = append(members[g], i)
	}
	var where []int
	for _, m := range members {
		where = append(where, m...)
	}
	return out, where, nil
}

var verbs = map[Ending]lua.Verb{
	Completed: lua.Complete, Failed: lua.Fail, Retried: lua.Requeue, Released: lua.Requeue, Cancelled: lua.CancelIt,
}

func (r Settled) item() (lua.Item, error) {
	it := lua.Item{Ordinal: r.Ordinal}
	e := umbel.Event{Row: umbel.Row{Ordinal: r.Ordinal, Attempt: r.Attempt}, Result: r.Result, Failure: r.Failure}
	switch r.Ending {
	case Completed:
		e.Type = umbel.ActivityCompleted
	case Failed:
		e.Type = umbel.ActivityFailed
	case Cancelled:
		e.Type = umbel.ActivityCancelled
	case Released:
		return it, nil
	case Retried:
		return r.retried(it, e)
	}
	var err error
	if it.Event, err = encodeEvent(nil, e); err != nil {
		return it, err
	}
	return it, nil
}

// retried is the item of an attempt that failed and is followed by another.
func (r Settled) retried(it lua.Item, e umbel.Event) (lua.Item, error) {
	wait := int64((max(r.Wait, 0) + time.Millisecond - 1) / time.Millisecond)
	e.Type = umbel.ActivityAttemptFailed
	it.Due, it.Tries, it.Error = -wait, strconv.Itoa(r.Attempt), EncodeFailure(failureOf(e))
	e.Failure = withoutStacks(failureOf(e).Clip())
	next := umbel.Event{Type: umbel.ActivityStarted, Row: umbel.Row{Ordinal: r.Ordinal, Attempt: r.Attempt + 1}}
	var err error
	// without a wait the next is due with this very entry: a millisecond says that there is a next
	it.Event, err = encodeEvent(appendAttemptFailed(nil, e, max(wait, 1)), next)
	return it, err
}

// withoutStacks is f as history keeps it of an attempt that is not the last: the row's record has its stacks until
// the next one ends.
func withoutStacks(f *umbel.Failure) *umbel.Failure {
	c := *f
	c.Stack = ""
	if c.Cause != nil {
		c.Cause = withoutStacks(c.Cause)
	}
	return &c
}

// answers reads what became of the rows of a batch.
func (h *Redis) answers(ctx context.Context, b Batch, gs []lua.Group, where []int, r lua.SettleReply) (Answers, error) {
	a := Answers{Rows: make([]Answer, len(b.Rows))}
	switch r.Outcome {
	case "ok":
		if r.Status != string(umbel.StatusRunning) {
			a.Closed = umbel.Status(r.Status)
		}
		first := make([]int, len(gs))
		for g := 1; g < len(gs); g++ {
			first[g] = first[g-1] + len(gs[g-1].Items)
		}
		for _, x := range r.Exceptions {
			a.Rows[where[first[x.Group]+x.Item]] = Answer{Code: exceptionCodes[x.Code], Attempt: x.Attempt}
		}
	case "closed":
		a.Closed = umbel.Status(r.Status)
		ordinals := make([]int64, len(b.Rows))
		for i, s := range b.Rows {
			ordinals[i] = s.Ordinal
		}
		attempts, err := h.outbox.Attempts(ctx, b.Run, ordinals)
		if err != nil {
			return a, err
		}
		for i, s := range b.Rows {
			a.Rows[i] = Answer{Code: CodeDropped, Attempt: attempts[s.Ordinal]}
		}
	case "live":
		a.Live = true
	case "absent":
		for i := range a.Rows {
			a.Rows[i] = Answer{Code: CodeAbsent}
		}
	default:
		return a, positionError("report", Workflow{ID: b.Run.WorkflowID, RunID: b.Run.ID}, Position{}, r.Outcome, r.Number)
	}
	return a, nil
}

var exceptionCodes = map[byte]Code{'d': CodeDropped, 's': CodeStale, 'n': CodeAbsent, 'v': CodeStale}
