package outbox

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel"
)

// view is how a row stands.
type view struct {
	ordinal int64
	status  Status // "" if there is no such row
	attempt int    // that was recorded, from 1; 0 if it was cancelled. Terminal rows only
	tries   int
	route   int
	fresh   bool
	muted   bool // resolved by the outbox alone: history has no terminal
	nonce   string
	in      input // without the bytes of a large one
	// Where the row waits, or since when it is held: set by locate.
	span    string // that the fresh row is in
	visible time.Time
	claimed time.Time
}

const (
	peekRows = 500     // of one read
	peekBits = 1 << 15 // how far apart the ordinals of one read may be
)

// peek reads how rows stand: each page of neighbours in one transaction, in constant time a row.
func (o *Redis) peek(ctx context.Context, run *Run, ordinals ...int64) ([]view, error) {
	out := make([]view, 0, len(ordinals))
	for len(ordinals) > 0 {
		first, n := ordinals[0], 1
		for n < min(len(ordinals), peekRows) && ordinals[n] >= first && ordinals[n]-first < peekBits {
			n++
		}
		page, err := o.peekPage(ctx, run, ordinals[:n])
		if err != nil {
			return nil, err
		}
		out, ordinals = append(out, page...), ordinals[n:]
	}
	return out, nil
}

// bitmaps are those that say how an ordinal was resolved, in the order of the indices below.
func bitmaps(run *Run) []string {
	k := run.Keys
	return []string{k.Resolved(), k.Failed(), k.Cancelled(), k.Rest(), k.Muted()}
}

const (
	bitResolved = iota
	bitFailed
	bitCancelled
	bitRest
	bitMuted
	bitmapCount
)

func (o *Redis) peekPage(ctx context.Context, run *Run, ordinals []int64) ([]view, error) {
	fields, chunks, rd := make([]string, len(ordinals)), []string(nil), run.reader()
	first, last := ordinals[0], ordinals[0]
	for i, n := range ordinals {
		fields[i] = strconv.FormatInt(n, 10)
		last = max(last, n)
		if _, ok := rd.chunks[n/run.ChunkRows]; !ok {
			rd.chunks[n/run.ChunkRows] = ""
			chunks = append(chunks, strconv.FormatInt(n/run.ChunkRows, 10))
		}
	}
	names := bitmaps(run)
	bits := make([]*redis.StringCmd, len(names))
	var n *redis.StringCmd
	var recs, attempts, inputs *redis.SliceCmd
	err := o.scripts.Retry(ctx, func() error {
		_, err := o.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
			n = p.HGet(ctx, run.Keys.Record(), "n")
			for i, key := range names {
				bits[i] = p.GetRange(ctx, key, first/8, last/8)
			}
			recs = p.HMGet(ctx, run.Keys.Rows(), fields...)
			attempts = p.HMGet(ctx, run.Keys.Attempts(), fields...)
			inputs = p.HMGet(ctx, run.Keys.Inputs(), chunks...)
			return nil
		})
		if errors.Is(err, redis.Nil) {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, o.fail("read row", err)
	}
	for i, v := range inputs.Val() {
		number, _ := strconv.ParseInt(chunks[i], 10, 64)
		rd.chunks[number], _ = v.(string)
	}
	rows, _ := n.Int64() // absent is 0
	out := make([]view, len(ordinals))
	for i, ordinal := range ordinals {
		out[i].ordinal = ordinal
		if ordinal >= rows {
			continue
		}
		var how [bitmapCount]bool
		for b, c := range bits {
			how[b] = bitmap(c.Val()).has(ordinal - first/8*8)
		}
		rec, _ := recs.Val()[i].(string)
		attempt, _ := attempts.Val()[i].(string)
		if err := out[i].decode(rd, how, rec, attempt); err != nil {
			return nil, o.broken("read row", run.WorkflowID, run.ID, fmt.Errorf("ordinal %d: %w", ordinal, err))
		}
	}
	return out, nil
}

// reader is an empty reader of a run's chunks.
func (r *Run) reader() *chunkReader {
	return &chunkReader{rows: r.ChunkRows, shared: r.ContentType, chunks: map[int64]string{}, at: -1}
}

// decode makes a view of a row that exists.
func (v *view) decode(rd *chunkReader, how [bitmapCount]bool, rec, attempt string) (err error) {
	if v.in, err = rd.input(v.ordinal); err != nil {
		return err
	}
	v.route = v.in.route
	switch {
	case how[bitResolved]:
		v.status, v.attempt = Done, 1
		if attempt != "" {
			v.attempt, _ = strconv.Atoi(attempt)
		}
		v.tries, v.muted = v.attempt-1, how[bitMuted]
		if how[bitFailed] {
			v.status = Failed
		} else if how[bitCancelled] || how[bitRest] {
			v.status, v.attempt = Cancelled, 0
		}
	case rec != "":
		r, err := parseRecord(rec)
		if err != nil {
			return err
		}
		v.status, v.tries, v.route, v.nonce = Pending, r.tries, r.route, r.nonce
		if r.claimed {
			v.status = Claimed
		}
	default:
		v.status, v.fresh = Pending, true
	}
	return nil
}

// row makes a [Row] of a view.
func (v *view) row(run *Run) Row {
	r := Row{
		Namespace: run.Namespace, WorkflowID: run.WorkflowID, Ordinal: v.ordinal, RunID: run.Public(),
		Input: v.in.payload, Status: v.status, Attempt: v.tries, VisibleAfter: v.visible, ClaimedAt: v.claimed,
	}
	if v.route < len(run.Routes) {
		q := run.Routes[v.route]
		r.TaskQueue, r.Node, r.ActivityType = q.TaskQueue, q.Node, q.Type
	}
	return r
}

// Look is how a row stands, as far as a decision about its outcome needs it.
type Look struct {
	Status Status // "" if there is no such row
	Muted  bool   // it was ended through the outbox alone: history has no terminal of it
	Tries  int    // spent
	Route  int
}

// Look reads how a row of a run stands, in constant time.
func (o *Redis) Look(ctx context.Context, run *Run, ordinal int64) (Look, error) {
	vs, err := o.peek(ctx, run, ordinal)
	if err != nil {
		return Look{}, err
	}
	return Look{Status: vs[0].status, Muted: vs[0].muted, Tries: vs[0].tries, Route: vs[0].route}, nil
}

// Attempts reads which attempt of each ordinal of a run was recorded, 0 if it was cancelled.
func (o *Redis) Attempts(ctx context.Context, run *Run, ordinals []int64) (map[int64]int, error) {
	vs, err := o.peek(ctx, run, ordinals...)
	if err != nil {
		return nil, err
	}
	out := make(map[int64]int, len(ordinals))
	for _, v := range vs {
		out[v.ordinal] = v.attempt
	}
	return out, nil
}

func (k Key) validate() error {
	if err := umbel.ValidateLabel("namespace", k.Namespace); err != nil {
		return err
	}
	if err := umbel.ValidateName("workflow ID", string(k.WorkflowID)); err != nil {
		return err
	}
	if k.Ordinal < 0 || k.Ordinal > umbel.MaxOrdinal {
		return umbel.Invalid("ordinal", strconv.FormatInt(k.Ordinal, 10), "must be from 0 to "+strconv.Itoa(umbel.MaxOrdinal))
	}
	return nil
}
