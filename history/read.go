package history

import (
	"cmp"
	"context"
	"fmt"
	"hash/crc32"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/outbox"
)

// entry is an entry of the stream: count events from sequence number first on.
type entry struct {
	first, count int64
	kind         string // e, d or x
	value        string
	at           time.Time
}

func (e entry) last() int64 { return e.first + e.count - 1 }

// check tells this entry from any other that could stand in its place.
func (e entry) check() uint32 {
	return crc32.ChecksumIEEE([]byte(strconv.FormatInt(e.first, 10) + e.kind + e.value + strconv.FormatInt(e.at.UnixMilli(), 10)))
}

func parseEntry(m redis.XMessage) (entry, error) {
	var e entry
	first, count, ok := strings.Cut(m.ID, "-")
	var err1, err2 error
	e.first, err1 = strconv.ParseInt(first, 10, 64)
	e.count, err2 = strconv.ParseInt(count, 10, 64)
	if !ok || err1 != nil || err2 != nil || e.count < 1 {
		return e, fmt.Errorf("entry %q: %w", m.ID, errDamaged)
	}
	for k, v := range m.Values {
		s, _ := v.(string)
		if k == "t" {
			ms, err := strconv.ParseInt(s, 10, 64)
			if err != nil {
				return e, fmt.Errorf("entry %q: %w", m.ID, errDamaged)
			}
			e.at = time.UnixMilli(ms).UTC()
			continue
		}
		e.kind, e.value = k, s
	}
	return e, nil
}

// entryAt returns the entry that holds a sequence number; false if history does not reach it, or has not got it.
func (h *Redis) entryAt(ctx context.Context, key string, seq int64) (entry, bool, error) {
	var ms []redis.XMessage
	err := h.scripts.Retry(ctx, func() (err error) {
		ms, err = h.rdb.XRevRangeN(ctx, key, strconv.FormatInt(seq, 10), "-", 1).Result()
		return err
	})
	if err != nil || len(ms) == 0 {
		return entry{}, false, outbox.Failure("read history", err)
	}
	e, err := parseEntry(ms[0])
	return e, err == nil && e.last() >= seq, err
}

// What one read of entries may bring: most are a few KB, one with a large result is 2 MB. The first read is short, and
// each one as long as the sizes of what came before it allow.
const (
	entriesFirst = 4
	entriesPage  = 32
	entriesBytes = 1 << 20
)

// entries yields the entries from the one that holds sequence number from on.
func (h *Redis) entries(ctx context.Context, key string, from int64) func(func(entry, error) bool) {
	return func(yield func(entry, error) bool) {
		e, ok, err := h.entryAt(ctx, key, from)
		start := strconv.FormatInt(from, 10)
		if err != nil || ok && !yield(e, nil) {
			if err != nil {
				yield(entry{}, err)
			}
			return
		}
		if ok {
			start = strconv.FormatInt(e.last()+1, 10)
		}
		largest := len(e.value)
		for most := entriesFirst; ; most = min(2*most, entriesPage) {
			most = min(most, max(1, entriesBytes/max(1, largest)))
			var ms []redis.XMessage
			err := h.scripts.Retry(ctx, func() (err error) {
				ms, err = h.rdb.XRangeN(ctx, key, start, "+", int64(most)).Result()
				return err
			})
			if err != nil {
				yield(entry{}, outbox.Failure("read history", err))
				return
			}
			largest = 0
			for _, m := range ms {
				e, err := parseEntry(m)
				if !yield(e, err) || err != nil {
					return
				}
				start = strconv.FormatInt(e.last()+1, 10)
				largest = max(largest, len(e.value))
			}
			if len(ms) < most {
				return
			}
		}
	}
}

// Read implements [Store].
func (h *Redis) Read(ctx context.Context, wf Workflow, from int64, limit int) ([]umbel.Event, error) {
	wf, err := wf.withDefaults()
	if err != nil {
		return nil, err
	}
	if from < 1 || limit < 1 {
		return nil, umbel.Invalid("page", fmt.Sprintf("from %d, limit %d", from, limit), "must begin at 1 or later and hold at least 1")
	}
	sh, k := h.keys(wf)
	var out []umbel.Event
	bytes := 0
	x := expander{h: h, shard: sh.Index}
	for e, err := range h.entries(ctx, k.History, from) {
		if err != nil {
			return nil, outbox.Failure("read history", err)
		}
		for ev, err := range x.events(ctx, e, max(from, e.first)) {
			if err != nil {
				return nil, outbox.Failure("read history", err)
			}
			if bytes += size(ev); len(out) > 0 && bytes > umbel.MaxPageBytes {
				return out, nil
			}
			if out = append(out, ev); len(out) == limit {
				return out, nil
			}
		}
	}
	return out, nil
}

// size is roughly what an event takes of a page.
func size(e umbel.Event) int {
	n := 64 + len(e.Input.Data) + len(e.Result.Data) + len(e.Key) + len(e.Reason)
	for f := e.Failure; f != nil; f = f.Cause {
		n += len(f.Message) + len(f.Stack) + len(f.Type)
	}
	return n
}

// expander turns entries into events.
type expander struct {
	h     *Redis
	shard int
}

// events yields the events of an entry from sequence number from on.
func (x *expander) events(ctx context.Context, e entry, from int64) func(func(umbel.Event, error) bool) {
	switch e.kind {
	case "e":
		return e.decode(from)
	case "d":
		return x.dispatch(ctx, e, from)
	case "x":
		return x.rest(ctx, e, from)
	}
	return func(yield func(umbel.Event, error) bool) {
		yield(umbel.Event{}, fmt.Errorf("entry of kind %q is unknown to this version", e.kind))
	}
}

// decode yields the events of an entry that holds them as they are.
func (e entry) decode(from int64) func(func(umbel.Event, error) bool) {
	return func(yield func(umbel.Event, error) bool) {
		d, who := decoder{rest: e.value}, actor{}
		for seq := e.first; seq <= e.last(); seq++ {
			ev := d.event(e.at, &who)
			if d.err != nil {
				yield(ev, fmt.Errorf("event %d: %w", seq, d.err))
				return
			}
			ev.Seq = seq
			if seq >= from && !yield(ev, nil) {
				return
			}
		}
	}
}

// dispatched reads what an entry of kind d holds. A run's ID may have spaces.
func (e entry) dispatched() (first, count int64, run umbel.RunID, err error) {
	p := strings.SplitN(e.value, " ", 3)
	if len(p) == 3 {
		var err1, err2 error
		first, err1 = strconv.ParseInt(p[0], 10, 64)
		count, err2 = strconv.ParseInt(p[1], 10, 64)
		if err1 == nil && err2 == nil && first >= 0 && count > 0 && first+count <= umbel.MaxOrdinal+1 && e.count == 2*count {
			return first, count, umbel.RunID(p[2]), nil
		}
	}
	return 0, 0, "", fmt.Errorf("dispatch %.80q: %w", e.value, errDamaged)
}

// dispatch yields ActivityScheduled and ActivityStarted of consecutive ordinals, from the inputs as staged.
func (x *expander) dispatch(ctx context.Context, e entry, from int64) func(func(umbel.Event, error) bool) {
	const page = 500
	return func(yield func(umbel.Event, error) bool) {
		first, count, id, err := e.dispatched()
		if err != nil {
			yield(umbel.Event{}, err)
			return
		}
		run, err := x.h.outbox.Run(ctx, x.shard, id)
		if err != nil || run == nil {
			yield(umbel.Event{}, cmp.Or(err, fmt.Errorf("dispatch %.80q: its run is gone", e.value)))
			return
		}
		seq := max(from, e.first)
		for seq <= e.last() {
			ordinal := first + (seq-e.first)/2
			ordinals := make([]int64, min(page, first+count-ordinal))
			for i := range ordinals {
				ordinals[i] = ordinal + int64(i)
			}
			items, err := x.h.outbox.Items(ctx, run, ordinals)
			if err != nil {
				yield(umbel.Event{}, err)
				return
			}
			for i, it := range items {
				at := e.first + 2*(ordinals[i]-first)
				if at >= from && !yield(x.scheduled(ctx, run, at, e.at, ordinals[i], it)) {
					return
				}
				if !yield(umbel.Event{
					Seq: at + 1, Type: umbel.ActivityStarted, At: e.at, Row: umbel.Row{Ordinal: ordinals[i], Attempt: 1},
				}, nil) {
					return
				}
			}
			seq = e.first + 2*(ordinals[len(ordinals)-1]-first) + 2
		}
	}
}

// scheduled is the event of a row that was dispatched, with its whole input.
func (x *expander) scheduled(
	ctx context.Context, run *outbox.Run, seq int64, at time.Time, ordinal int64, it outbox.Item,
) (umbel.Event, error) {
	input, err := x.h.whole(ctx, run, ordinal, it)
	return umbel.Event{
		Seq: seq, Type: umbel.ActivityScheduled, At: at, TaskQueue: it.On.TaskQueue, Node: it.On.Node,
		Row: umbel.Row{Ordinal: ordinal, Key: it.Key, Type: it.On.Type, Input: input},
	}, err
}

// rest yields ActivityCancelled for each ordinal that a run's cancel found open.
func (x *expander) rest(ctx context.Context, e entry, from int64) func(func(umbel.Event, error) bool) {
	return func(yield func(umbel.Event, error) bool) {
		seq := max(from, e.first)
		key := x.h.outbox.Space().Shard(x.shard).Run(e.value).Rest()
		for ordinal, err := range x.h.bits(ctx, key, seq-e.first) {
			if err != nil {
				yield(umbel.Event{}, err)
				return
			}
			if !yield(umbel.Event{
				Seq: seq, Type: umbel.ActivityCancelled, At: e.at, Row: umbel.Row{Ordinal: ordinal},
			}, nil) {
				return
			}
			seq++
		}
		if seq != e.last()+1 {
			yield(umbel.Event{}, fmt.Errorf("cancel at %d names %d ordinals, not %d: %w", e.first, seq-e.first, e.count, errDamaged))
		}
	}
}

// bits yields the numbers of the bits that are set in a bitmap, without the first skip of them.
func (h *Redis) bits(ctx context.Context, key string, skip int64) func(func(int64, error) bool) {
	const page = 64 << 10
	return func(yield func(int64, error) bool) {
		for at := int64(0); ; at += page {
			var s string
			err := h.scripts.Retry(ctx, func() (err error) {
				s, err = h.rdb.GetRange(ctx, key, at, at+page-1).Result()
				return err
			})
			if err != nil {
				yield(0, outbox.Failure("read history", err))
				return
			}
			for i := range len(s) {
				if n := int64(bits.OnesCount8(s[i])); n <= skip {
					skip -= n
					continue
				}
				for b := range 8 {
					if s[i]>>(7-b)&1 == 0 {
						continue
					}
					if skip--; skip < 0 && !yield((at+int64(i))*8+int64(b), nil) {
						return
					}
				}
			}
			if len(s) < page {
				return
			}
		}
	}
}
