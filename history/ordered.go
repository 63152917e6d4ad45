package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/outbox"
)

// The index of a run finds an ordinal's terminal: for each ordinal, five bytes with the first sequence number of
// the entry that holds it; zeros where there is none yet. It is made at the first ordered read and goes on from
// there, so that reports pay nothing for it.
const indexWidth = 5

// maxIndexed is the last sequence number that the index can name. Two bytes more a row would be paid by every run, and
// a history of 2⁴⁰ events would take Redis terabytes.
const maxIndexed = 1<<(8*indexWidth) - 1

// beyondIndex refuses what the index cannot name.
func beyondIndex(run *outbox.Run, seq int64) error {
	return &umbel.Error{
		Code: umbel.CodeLimit, Op: "read results", WorkflowID: run.WorkflowID, RunID: run.ID, NotApplied: true,
		Field: "history", Value: strconv.FormatInt(seq, 10),
		Reason: fmt.Sprintf("exceeds the limit of %d events for results by ordinal; read them as they were recorded", int64(maxIndexed)),
	}
}

// index brings a run's index up to what history holds.
func (h *Redis) index(ctx context.Context, run *outbox.Run, history string) error {
	var done int64
	err := h.scripts.Retry(ctx, func() (err error) {
		done, err = h.rdb.HGet(ctx, run.Keys.Record(), "indexed").Int64()
		if errors.Is(err, redis.Nil) {
			return nil
		}
		return err
	})
	if err != nil {
		return outbox.Failure("read results", err)
	}
	b, stored := indexer{h: h, key: run.Keys.Index()}, done
	for e, err := range h.entries(ctx, history, done+1) {
		if err != nil {
			return outbox.Failure("read results", err)
		}
		if e.kind == "e" {
			for ev, err := range e.decode(e.first) {
				if err != nil {
					return outbox.Failure("read results", err)
				}
				if !ev.Type.Terminal() {
					continue
				}
				if e.first > maxIndexed {
					return beyondIndex(run, e.first)
				}
				b.add(ev.Ordinal, e.first)
			}
		}
		done = e.last()
		if len(b.marks) >= indexPage {
			if err := b.flush(ctx, run, done); err != nil {
				return err
			}
			stored = done
		}
	}
	if done == stored {
		return nil
	}
	return b.flush(ctx, run, done)
}

// indexPage bounds what an indexer holds.
const indexPage = 10_000

type mark struct{ ordinal, first int64 }

type indexer struct {
	h     *Redis
	key   string
	marks []mark
}

func (b *indexer) add(ordinal, first int64) { b.marks = append(b.marks, mark{ordinal, first}) }

// flush writes what was collected, neighbours together, and how far it reaches.
func (b *indexer) flush(ctx context.Context, run *outbox.Run, done int64) error {
	slices.SortFunc(b.marks, func(x, y mark) int { return cmp.Compare(x.ordinal, y.ordinal) })
	err := b.h.scripts.Retry(ctx, func() error {
		_, err := b.h.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			var buf []byte
			start := 0
			for i, m := range b.marks {
				buf = append(buf, byte(m.first>>32), byte(m.first>>24), byte(m.first>>16), byte(m.first>>8), byte(m.first))
				if i == len(b.marks)-1 || b.marks[i+1].ordinal != m.ordinal+1 {
					p.SetRange(ctx, b.key, b.marks[start].ordinal*indexWidth, string(buf))
					buf, start = buf[:0], i+1
				}
			}
			p.HSet(ctx, run.Keys.Record(), "indexed", done)
			return nil
		})
		return err
	})
	b.marks = b.marks[:0]
	return outbox.Failure("read results", err)
}

// orderedAt reads a cursor of results by ordinal; the empty one is the first.
func orderedAt(run *outbox.Run, from umbel.Cursor) (cursor, error) {
	if from == "" {
		return cursor{run: run.ID, ordered: true}, nil
	}
	c, err := parseCursor(from)
	if err == nil && (c.run != run.ID || !c.ordered) {
		err = umbel.Invalid("cursor", string(from), "is of another run or of another order")
	}
	return c, err
}

// Ordered reads results of a run by ordinal. A page ends before the first ordinal that is still open.
func (h *Redis) Ordered(ctx context.Context, run *outbox.Run, from umbel.Cursor, limit int, inputs bool) (Page, error) {
	_, k := h.keys(Workflow{Namespace: run.Namespace, ID: run.WorkflowID})
	at, err := orderedAt(run, from)
	if err != nil {
		return Page{}, err
	}
	if err := h.index(ctx, run, k.History); err != nil {
		return Page{}, err
	}
	n, err := h.outbox.Rows(ctx, run.Namespace, run.WorkflowID, run.ID)
	if err != nil {
		return Page{}, err
	}
	p := Page{Next: cursor{run: run.ID, ordered: true, at: at.at}.String()}
	bytes, read := 0, map[int64]map[int64]umbel.Event{}
	for len(p.Results) < limit && at.at < n {
		const step = 500
		firsts, rest, err := h.places(ctx, run, at.at, min(step, n-at.at, int64(limit-len(p.Results))))
		if err != nil {
			return p, err
		}
		if err := h.fetch(ctx, k.History, firsts, read); err != nil {
			return p, err
		}
		for i, first := range firsts {
			if first > 0 && read[first] == nil {
				break // more than a page: it is read when it is needed
			}
			ev, ok := read[first][at.at]
			if !ok && rest[i] {
				ev, ok = umbel.Event{Type: umbel.ActivityCancelled, Row: umbel.Row{Ordinal: at.at}}, true
			}
			if !ok { // still open
				return h.describe(ctx, run, p, inputs, bytes)
			}
			if bytes += size(ev); len(p.Results) > 0 && bytes > umbel.MaxPageBytes {
				return h.describe(ctx, run, p, inputs, bytes-size(ev))
			}
			at.at++
			r := result(ev)
			r.Cursor = at.String()
			p.Next = r.Cursor
			p.Results = append(p.Results, r)
		}
	}
	p.End = at.at >= n
	return h.describe(ctx, run, p, inputs, bytes)
}

// places reads the index of consecutive ordinals, and which of them the run's cancel found open.
func (h *Redis) places(ctx context.Context, run *outbox.Run, from, count int64) ([]int64, []bool, error) {
	var index, rest *redis.StringCmd
	err := h.scripts.Retry(ctx, func() error {
		_, err := h.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			index = p.GetRange(ctx, run.Keys.Index(), from*indexWidth, (from+count)*indexWidth-1)
			rest = p.GetRange(ctx, run.Keys.Rest(), from/8, (from+count-1)/8)
			return nil
		})
		return err
	})
	if err != nil {
		return nil, nil, outbox.Failure("read results", err)
	}
	firsts, cancelled := make([]int64, count), make([]bool, count)
	for i := range firsts {
		if at := (i + 1) * indexWidth; at <= len(index.Val()) {
			for _, c := range []byte(index.Val()[at-indexWidth : at]) {
				firsts[i] = firsts[i]<<8 | int64(c)
			}
		}
		bit := from%8 + int64(i)
		if s := rest.Val(); bit/8 < int64(len(s)) {
			cancelled[i] = s[bit/8]>>(7-bit%8)&1 == 1
		}
	}
	return firsts, cancelled, nil
}

// fetch reads the entries that begin at the given sequence numbers into read, by ordinal, unless they are there. It
// stops when it has read a page's bytes, with the first that was missing at least.
func (h *Redis) fetch(ctx context.Context, history string, firsts []int64, read map[int64]map[int64]umbel.Event) error {
	const most = 64 // entries that are held: neighbours are mostly in the same ones
	var missing []int64
	for _, f := range firsts {
		if f > 0 && read[f] == nil && !slices.Contains(missing, f) {
			missing = append(missing, f)
		}
	}
	if len(read)+len(missing) > most {
		for f := range read {
			if !slices.Contains(firsts, f) {
				delete(read, f)
			}
		}
	}
	bytes, largest := 0, 0
	for n := entriesFirst; len(missing) > 0 && bytes < umbel.MaxPageBytes; n = min(2*n, entriesPage) {
		n = min(n, max(1, entriesBytes/max(1, largest)), len(missing))
		entries, err := h.entriesAt(ctx, history, missing[:n])
		if err != nil {
			return err
		}
		largest = 0
		for i, e := range entries {
			events := map[int64]umbel.Event{}
			for ev, err := range e.decode(e.first) {
				if err != nil {
					return outbox.Failure("read results", err)
				}
				if ev.Type.Terminal() {
					events[ev.Ordinal] = ev
				}
			}
			read[missing[i]] = events
			bytes, largest = bytes+len(e.value), max(largest, len(e.value))
		}
		missing = missing[n:]
	}
	return nil
}

// entriesAt reads the entries that begin at the given sequence numbers, in one round trip; one that is gone has no events.
func (h *Redis) entriesAt(ctx context.Context, history string, firsts []int64) ([]entry, error) {
	cmds := make([]*redis.XMessageSliceCmd, len(firsts))
	err := h.scripts.Retry(ctx, func() error {
		_, err := h.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, f := range firsts {
				s := strconv.FormatInt(f, 10)
				cmds[i] = p.XRangeN(ctx, history, s, s, 1)
			}
			return nil
		})
		return err
	})
	if err != nil {
		return nil, outbox.Failure("read results", err)
	}
	out := make([]entry, len(firsts))
	for i := range firsts {
		for _, m := range cmds[i].Val() {
			if out[i], err = parseEntry(m); err != nil {
				return nil, outbox.Failure("read results", err)
			}
		}
	}
	return out, nil
}
