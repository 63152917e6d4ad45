package outbox

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel"
)

// List asks for runs of a namespace, the latest started first, those of one millisecond by ID, downwards.
type List struct {
	Namespace string
	Status    umbel.Status // empty: any
	Type      string       // only runs that have rows of this activity type; empty: any
	Prefix    string       // only workflow IDs that begin with it; empty: any
	Cursor    umbel.Cursor // empty: from the latest
	Limit     int          // 1 or more
}

// Listed is a run and how it stood when it was read.
type Listed struct {
	Run      *Run
	Standing Standing
}

// RunPage is a part of a list. Next goes on after it; Done says that there was no more when it was read.
type RunPage struct {
	Runs []Listed
	Next umbel.Cursor
	Done bool
}

const (
	// maxListScan bounds the records that a page looks at, so that a call is short however few of them pass the
	// filters: it returns what it has found, and where to go on.
	maxListScan = umbel.MaxListItems
	// listRecords are the records of one round trip: with a table of routes each, of up to 64 KB.
	listRecords = 100
)

// List returns a page of runs. It is ErrInvalid if the cursor is of another list. A page looks at 1,000 runs and
// holds 4 MiB at most: one may be shorter than Limit, even empty, and still advance.
//
// A run that neither starts nor closes while pages are read is on exactly one of them.
func (o *Redis) List(ctx context.Context, l List) (RunPage, error) {
	at, err := l.parse(l.Cursor)
	if err != nil {
		return RunPage{}, err
	}
	var page RunPage
	m, bytes := o.merge(l, at), 0
	for scanned := 0; len(page.Runs) < l.Limit && scanned < maxListScan; {
		most := listRecords
		if l.Type == "" && l.Prefix == "" {
			most = min(most, l.Limit-len(page.Runs))
		}
		places, err := m.next(ctx, min(most, maxListScan-scanned))
		if err != nil {
			return RunPage{}, o.fail("list", err)
		}
		if len(places) == 0 {
			break
		}
		runs, err := o.listed(ctx, places)
		if err != nil {
			return RunPage{}, o.fail("list", err)
		}
		for i, r := range runs {
			if l.admits(r) {
				if bytes += r.bytes(); len(page.Runs) == l.Limit || len(page.Runs) > 0 && bytes > umbel.MaxPageBytes {
					page.Next = l.cursor(at)
					return page, nil
				}
				page.Runs = append(page.Runs, r)
			}
			at = places[i]
		}
		scanned += len(places)
	}
	page.Next = l.cursor(at)
	page.Done, err = m.ended(ctx)
	return page, o.fail("list", err)
}

// admits reports whether a run is asked for. One that has closed since it was found is in another list now.
func (l List) admits(r Listed) bool {
	return r.Run != nil && r.Run.Namespace == l.Namespace &&
		(l.Status == "" || r.Standing.Status == l.Status) &&
		strings.HasPrefix(string(r.Run.WorkflowID), l.Prefix) &&
		(l.Type == "" || r.Run.hasType(l.Type))
}

// bytes is roughly what a run takes of a page, and of what was read for it.
func (r Listed) bytes() int {
	n := 128 + len(r.Run.WorkflowID)
	for _, name := range r.Run.Names {
		n += len(name)
	}
	return n
}

// listed reads the records of runs; the Run of one that is gone is nil.
func (o *Redis) listed(ctx context.Context, places []place) ([]Listed, error) {
	cmds := make([]*redis.MapStringStringCmd, len(places))
	err := o.scripts.Retry(ctx, func() error {
		_, err := o.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, at := range places {
				cmds[i] = p.HGetAll(ctx, o.space.Shard(at.shard).Run(string(at.run)).Record())
			}
			return nil
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	out := make([]Listed, len(places))
	for i, at := range places {
		m := cmds[i].Val()
		if m["ns"] == "" || m["status"] == staging {
			continue
		}
		delete(m, "types") // policies: a list has no use for them
		if out[i].Run, err = o.parseRun(at.shard, at.run, m); err != nil {
			return nil, err
		}
		if out[i].Standing, err = o.parseStanding(out[i].Run, m); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// merge reads the lists of all shards as one.
type merge struct {
	o     *Redis
	list  List
	each  int // places that are read of a shard at once
	parts []part
}

// part is the list of one shard, as far as it is read.
type part struct {
	at     place // the last that was read, or where to begin
	places []place
	end    bool
}

func (o *Redis) merge(l List, at place) *merge {
	want := l.Limit
	if l.Type != "" || l.Prefix != "" {
		want = maxListScan
	}
	// Runs are spread over the shards by chance: twice a shard's share is nearly always enough.
	m := &merge{o: o, list: l, each: 8 + 2*want/o.space.Shards(), parts: make([]part, o.space.Shards())}
	for i := range m.parts {
		m.parts[i].at = at
	}
	return m
}

// next returns the next n places at most; fewer only if there are no more.
func (m *merge) next(ctx context.Context, n int) ([]place, error) {
	var out []place
	for len(out) < n {
		if err := m.fill(ctx); err != nil {
			return nil, err
		}
		var first *part
		for i := range m.parts {
			p := &m.parts[i]
			if len(p.places) > 0 && (first == nil || p.places[0].compare(first.places[0]) < 0) {
				first = p
			}
		}
		if first == nil {
			break
		}
		out, first.places = append(out, first.places[0]), first.places[1:]
	}
	return out, nil
}

// ended reports whether nothing follows.
func (m *merge) ended(ctx context.Context) (bool, error) {
	err := m.fill(ctx)
	return err == nil && !slices.ContainsFunc(m.parts, func(p part) bool { return len(p.places) > 0 }), err
}

// fill reads on where a shard's places are used up.
func (m *merge) fill(ctx context.Context) error {
	var empty []int
	for i := range m.parts {
		if p := &m.parts[i]; len(p.places) == 0 && !p.end {
			empty = append(empty, i)
		}
	}
	if len(empty) == 0 {
		return nil
	}
	cmds := make([]*redis.StringSliceCmd, len(empty))
	err := m.o.scripts.Retry(ctx, func() error {
		_, err := m.o.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, shard := range empty {
				by := m.list.after(shard, m.parts[shard].at)
				by.Count = int64(m.each)
				cmds[i] = p.ZRevRangeByLex(ctx, m.o.space.Shard(shard).Runs(m.list.Namespace), &by)
			}
			return nil
		})
		return err
	})
	if err != nil {
		return err
	}
	for i, shard := range empty {
		p := &m.parts[shard]
		for _, member := range cmds[i].Val() {
			at, err := parsePlace(shard, member)
			if err != nil {
				return m.o.broken("list", "", "", err)
			}
			p.places = append(p.places, at)
		}
		if p.end = len(p.places) < m.each; !p.end {
			p.at = p.places[len(p.places)-1]
		}
	}
	return nil
}

// compare orders places as a list has them.
func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(q.started, p.started), cmp.Compare(q.run, p.run), cmp.Compare(p.shard, q.shard))
}
