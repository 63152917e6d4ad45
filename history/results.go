package history

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/outbox"
)

// Page is a part of a run's results.
type Page struct {
	Results []umbel.Result[umbel.Payload]
	Next    umbel.Cursor
	End     bool // nothing more was recorded when the page was read
}

// cursor is a place in a run's results: a sequence number and a check of the entry that holds it, or an
// ordinal.
type cursor struct {
	run     umbel.RunID
	ordered bool
	at      int64 // sequence number of the last event that was read, or the next ordinal
	check   uint32
}

// String is RUN.SEQ.CHECK, or RUN.o.ORDINAL.
func (c cursor) String() umbel.Cursor {
	if c.ordered {
		return umbel.Cursor(fmt.Sprintf("%s.o.%d", c.run, c.at))
	}
	return umbel.Cursor(fmt.Sprintf("%s.%d.%08x", c.run, c.at, c.check))
}

// CursorRun returns the run that a cursor is of.
func CursorRun(s umbel.Cursor) (umbel.RunID, error) {
	c, err := parseCursor(s)
	return c.run, err
}

func parseCursor(s umbel.Cursor) (cursor, error) {
	bad := umbel.Invalid("cursor", string(s), "is not one that results came with")
	p := strings.Split(string(s), ".")
	if len(p) < 3 {
		return cursor{}, bad
	}
	run, seq, check := strings.Join(p[:len(p)-2], "."), p[len(p)-2], p[len(p)-1]
	c := cursor{run: umbel.RunID(run)}
	var err error
	if seq == "o" {
		c.ordered = true
		c.at, err = strconv.ParseInt(check, 10, 64)
	} else {
		var n uint64
		if n, err = strconv.ParseUint(check, 16, 32); err == nil {
			c.check = uint32(n)
			c.at, err = strconv.ParseInt(seq, 10, 64)
		}
	}
	if err != nil || c.at < 0 || run == "" {
		return cursor{}, bad
	}
	return c, nil
}

// Results reads results of a run after a cursor, as they were recorded; limit bounds them.
func (h *Redis) Results(ctx context.Context, run *outbox.Run, from umbel.Cursor, limit int, inputs bool) (Page, error) {
	_, k := h.keys(Workflow{Namespace: run.Namespace, ID: run.WorkflowID})
	at := cursor{run: run.ID}
	if from != "" {
		var err error
		if at, err = h.resume(ctx, run, k.History, from); err != nil {
			return Page{}, err
		}
	}
	x := expander{h: h, shard: run.Shard.Index}
	p := Page{Next: from, End: true}
	bytes := 0
	for e, err := range h.entries(ctx, k.History, at.at+1) {
		if err != nil {
			return p, outbox.Failure("read results", err)
		}
		// a dispatch has no results, and a page need not stop in the midst of it
		if e.kind == "d" {
			at = cursor{run: run.ID, at: e.last(), check: e.check()}
			p.Next = at.String()
			continue
		}
		check := e.check()
		for ev, err := range x.events(ctx, e, max(at.at+1, e.first)) {
			if err != nil {
				return p, outbox.Failure("read results", err)
			}
			at = cursor{run: run.ID, at: ev.Seq, check: check}
			if !ev.Type.Terminal() {
				continue
			}
			if bytes += size(ev); len(p.Results) == limit || len(p.Results) > 0 && bytes > umbel.MaxPageBytes {
				p.End = false
				return h.describe(ctx, run, p, inputs, bytes-size(ev))
			}
			r := result(ev)
			r.Cursor = at.String()
			p.Next = r.Cursor
			p.Results = append(p.Results, r)
		}
		p.Next = at.String()
	}
	return h.describe(ctx, run, p, inputs, bytes)
}

// resume checks a cursor against history: if its entry is another now, Redis was taken back to before it.
func (h *Redis) resume(ctx context.Context, run *outbox.Run, key string, from umbel.Cursor) (cursor, error) {
	c, err := parseCursor(from)
	if err != nil {
		return c, err
	}
	if c.run != run.ID || c.ordered {
		return c, umbel.Invalid("cursor", string(from), "is of another run or of another order")
	}
	e, ok, err := h.entryAt(ctx, key, c.at)
	if err != nil {
		return c, err
	}
	if !ok || e.check() != c.check {
		return c, &umbel.Error{
			Code: umbel.CodeCursorLost, Op: "read results", WorkflowID: run.WorkflowID, RunID: run.ID, NotApplied: true,
			Reason: "Redis was taken back to before this cursor; read again from the start",
		}
	}
	return c, nil
}

func result(e umbel.Event) umbel.Result[umbel.Payload] {
	r := umbel.Result[umbel.Payload]{Row: umbel.Row{Ordinal: e.Ordinal, Attempt: e.Attempt}}
	switch e.Type {
	case umbel.ActivityCompleted:
		r.Status, r.Value = umbel.StatusCompleted, e.Result
	case umbel.ActivityFailed:
		r.Status, r.Err = umbel.StatusFailed, e.Failure
	default:
		r.Status, r.Err = umbel.StatusCancelled, fmt.Errorf("ordinal %d: %w", e.Ordinal, umbel.ErrCancelled)
	}
	return r
}
