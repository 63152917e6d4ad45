package outbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/keys"
	"github.com/umbelhq/umbel/internal/lua"
)

// What one claim script may return: it stays well under 10 ms and its reply under about a MB.
const (
	maxClaimChunks = 64      // of at most 16 KB
	maxClaimLarge  = 1 << 20 // bytes of inputs that have a field of their own, and of last errors; one larger travels alone
	// MaxClaimRows bounds the rows of one claim script.
	MaxClaimRows = 250
)

// Ready is a route of a shard and the instant, by Redis's clock, at which to look at it.
type Ready struct {
	Route keys.Route
	At    time.Time
}

// ReadyPage and MaxReady bound how much of a shard's ready set is read: pages up to this many routes.
const (
	ReadyPage = 500
	MaxReady  = 5000
)

// Ready reads which routes of a shard have rows, the earliest first, and Redis's clock. It is the truth that
// wake-ups only hint at.
func (o *Redis) Ready(ctx context.Context, shard int) ([]Ready, time.Time, error) {
	key := o.space.Shard(shard).Ready()
	var out []Ready
	var now time.Time
	foreign := 0
	for len(out) < MaxReady {
		var page []redis.Z
		err := o.scripts.Retry(ctx, func() error {
			var z *redis.ZSliceCmd
			var t *redis.TimeCmd
			// TIME has no key: a cluster would send it to a master of its choice
			_, err := o.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
				z = p.ZRangeWithScores(ctx, key, int64(len(out)+foreign), int64(len(out)+foreign+ReadyPage-1))
				t = p.Time(ctx)
				return nil
			})
			if err == nil {
				page, now = z.Val(), t.Val()
			}
			return err
		})
		if err != nil {
			return nil, now, o.fail("read ready routes", err)
		}
		for _, z := range page {
			name, _ := z.Member.(string)
			r, ok := keys.ParseRoute(name)
			if !ok { // a later version's: not for this server
				foreign++
				continue
			}
			out = append(out, Ready{Route: r, At: millis(z.Score)})
		}
		if len(page) < ReadyPage {
			break
		}
	}
	return out, now, nil
}

func millis(score float64) time.Time { return time.UnixMicro(int64(score * 1000)).UTC() }

// Pair is a run that waits on one of its routes.
type Pair struct {
	Run   *Run
	Index int // the route's number in the run
	Most  int // rows to take at most; 0: no bound
	At    time.Time
}

// Pairs reads which runs wait on routes of a shard by the instant now, in the order in which they are to be
// served: the one that was not served for longest first. Up to most pairs are returned.
func (o *Redis) Pairs(ctx context.Context, shard int, routes []keys.Route, now time.Time, most int) ([]Pair, error) {
	sh := o.space.Shard(shard)
	cmds := make([]*redis.ZSliceCmd, len(routes))
	err := o.scripts.Retry(ctx, func() error {
		_, err := o.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, r := range routes {
				// by rank: Redis builds a reply by score in pieces of 16 KB
				cmds[i] = p.ZRangeWithScores(ctx, sh.Route(r.String()), 0, int64(most)-1)
			}
			return nil
		})
		return err
	})
	if err != nil {
		return nil, o.fail("read waiting runs", err)
	}
	type waiting struct {
		redis.Z
		route int
	}
	var all []waiting
	for i, c := range cmds {
		for _, z := range c.Val() {
			if z.Score > float64(now.UnixMilli()+1) {
				break
			}
			all = append(all, waiting{z, i})
		}
	}
	slices.SortStableFunc(all, func(a, b waiting) int { return cmp.Compare(a.Score, b.Score) })
	var out []Pair
	var damaged []error
	for _, w := range all {
		if len(out) == most {
			break
		}
		id, _ := w.Member.(string)
		p, err := o.pair(ctx, shard, umbel.RunID(id), routes[w.route])
		if errors.Is(err, umbel.ErrInternal) { // one damaged run must not stop its shard
			damaged = append(damaged, err)
			continue
		}
		if err != nil {
			return nil, err
		}
		if p.Run == nil { // its record was lost or evicted: the claim takes the entry away
			p = Pair{Run: o.leftover(sh, umbel.RunID(id), routes[w.route])}
		}
		p.At = millis(w.Score)
		out = append(out, p)
	}
	if len(out) == 0 {
		return nil, errors.Join(damaged...)
	}
	return out, nil
}

// leftover stands for a run whose record is gone.
func (o *Redis) leftover(sh keys.Shard, id umbel.RunID, route keys.Route) *Run {
	return &Run{
		ID: id, Namespace: route.Namespace, Shard: sh, Keys: sh.Run(string(id)), ChunkRows: 1,
		Routes: []keys.Route{route}, Names: []string{route.String()},
	}
}

// pair finds the number that a route has in a run.
func (o *Redis) pair(ctx context.Context, shard int, id umbel.RunID, route keys.Route) (Pair, error) {
	run, err := o.Run(ctx, shard, id)
	if err != nil || run == nil {
		return Pair{}, err
	}
	i := slices.Index(run.Routes, route)
	if i < 0 { // the run has grown since it was read
		if run, err = o.reload(ctx, shard, id); err != nil || run == nil {
			return Pair{}, err
		}
		if i = slices.Index(run.Routes, route); i < 0 {
			return Pair{}, o.broken("claim", run.WorkflowID, id, fmt.Errorf("run waits on route %q, which it does not have", route))
		}
	}
	return Pair{Run: run, Index: i}, nil
}

// Taker is a poll that waits for rows.
type Taker struct {
	Worker string
	Want   int
	nonce  string
}

// Held is a row in a claimer's hands.
type Held struct {
	Run       *Run
	Route     int
	Nonce     string
	Ordinal   int64
	Tries     int // spent before this claim
	Key       string
	Input     umbel.Payload
	LastError string // encoded, of the attempt before
	ClaimedAt time.Time
}

// Granted is what came of a claim.
type Granted struct {
	Now  time.Time
	Rows [][]Held
	// Routes are those that were looked at, with the instant at which to look again; zero: nothing waits there.
	Routes map[keys.Route]time.Time
	// More are the indices of pairs that have rows left which are due, or may have. A claim may come back with
	// no row and more: it only cleared away what was resolved.
	More   []int
	Broken []error // rows that were claimed but cannot be read; they come back when their lease lapses
}

// Take hands due rows of the pairs (at most lua.MaxPairs, of one shard) to takers, in one step.
//
// If the claim's reply is lost its rows are given back at once, or when their lease lapses, and cost no attempt:
// no worker has had them.
func (o *Redis) Take(ctx context.Context, shard int, lease time.Duration, pairs []Pair, takers []Taker) (Granted, error) {
	sh := o.space.Shard(shard)
	p := lua.Claim{
		Ready: sh.Ready(), Backlog: sh.Backlog(), Claims: sh.Claims(), Leases: sh.Leases(),
		Lease: lease.Milliseconds(), MaxChunks: maxClaimChunks, MaxLarge: maxClaimLarge,
	}
	for _, q := range pairs {
		p.Pairs = append(p.Pairs, lua.Pair{
			Run: q.Run.Keys.Record(), Rows: q.Run.Keys.Rows(), Inputs: q.Run.Keys.Inputs(), Resolved: q.Run.Keys.Resolved(),
			RouteKeys: lua.RouteKeys{Due: q.Run.Keys.Due(q.Index), Set: sh.Route(q.Run.Names[q.Index]), Route: q.Run.Names[q.Index]},
			ID:        string(q.Run.ID), Index: q.Index, Most: cmp.Or(q.Most, MaxClaimRows),
		})
	}
	for i, t := range takers {
		takers[i].nonce = strings.ToLower(rand.Text())[:lua.NonceRandom]
		p.Takers = append(p.Takers, lua.Taker{Nonce: takers[i].nonce, Want: t.Want, Worker: t.Worker})
	}
	r, err := o.scripts.Claim(ctx, p)
	if err == nil && r.Outcome == "again" {
		err = &umbel.Error{Code: umbel.CodeUnavailable, Op: "claim", Reason: "the reply was lost; the rows are given back"}
	}
	if err != nil {
		// it may have been applied
		back := context.WithoutCancel(ctx)
		return Granted{}, cmp.Or(o.fail("claim", err), o.giveBack(back, shard, pairs, takers))
	}
	g := Granted{Now: time.UnixMilli(r.Now).UTC(), Rows: make([][]Held, len(takers)), Routes: map[keys.Route]time.Time{}}
	for name, score := range r.Routes {
		route, ok := keys.ParseRoute(name)
		if !ok {
			return g, o.broken("claim", "", "", fmt.Errorf("route %q is damaged", name))
		}
		g.Routes[route] = time.Time{}
		if at, err := strconv.ParseFloat(score, 64); err == nil {
			g.Routes[route] = millis(at)
		}
	}
	for _, c := range r.Pairs {
		g.add(pairs[c.Pair], c, takers)
		if at, err := strconv.ParseFloat(c.Next, 64); err == nil && at <= float64(r.Now) {
			g.More = append(g.More, c.Pair)
		}
	}
	return g, nil
}

// add decodes what came of one pair.
func (g *Granted) add(q Pair, c lua.Claimed, takers []Taker) {
	rd := chunkReader{rows: q.Run.ChunkRows, shared: q.Run.ContentType, chunks: c.Chunks, at: -1}
	for _, grant := range c.Grants {
		ordinals, err := parseSpans(grant.Spans)
		if err != nil {
			g.Broken = append(g.Broken, err)
			continue
		}
		nonce := lua.Nonce(takers[grant.Taker].nonce, c.Pair)
		g.Rows[grant.Taker] = slices.Grow(g.Rows[grant.Taker], len(ordinals))
		for _, o := range ordinals {
			h := Held{Run: q.Run, Route: q.Index, Nonce: nonce, Ordinal: o, ClaimedAt: g.Now}
			if err := h.decode(&rd, c); err != nil {
				g.Broken = append(g.Broken, fmt.Errorf("row %s of run %s: %w",
					umbel.DispatchKey(q.Run.WorkflowID, o), q.Run.ID, err))
				continue
			}
			g.Rows[grant.Taker] = append(g.Rows[grant.Taker], h)
		}
	}
}

func (h *Held) decode(rd *chunkReader, c lua.Claimed) error {
	in, err := rd.input(h.Ordinal)
	if err != nil {
		return err
	}
	h.Key, h.Input = in.key, in.payload
	if in.large {
		data, ok := c.Large[h.Ordinal]
		if !ok {
			return errChunk
		}
		h.Input.Data = []byte(data)
	}
	if s, ok := c.Retried[h.Ordinal]; ok && s != "" {
		rec, err := parseRecord(s)
		if err != nil {
			return err
		}
		h.Tries, h.LastError = rec.tries, rec.err
	}
	return nil
}

// giveBack puts rows back that a claim without a reply may have taken.
func (o *Redis) giveBack(ctx context.Context, shard int, pairs []Pair, takers []Taker) error {
	ctx, cancel := context.WithTimeout(ctx, lua.Patience)
	defer cancel()
	var nonces []string
	for _, t := range takers {
		for i := range pairs {
			nonces = append(nonces, lua.Nonce(t.nonce, i))
		}
	}
	leases, err := o.Leases(ctx, shard, nonces)
	if err != nil {
		return err
	}
	for _, l := range leases {
		if err := o.Release(ctx, shard, l); err != nil {
			return err
		}
	}
	return nil
}

// Leases reads the records of claims; those that are gone are left out.
func (o *Redis) Leases(ctx context.Context, shard int, nonces []string) ([]Lease, error) {
	if len(nonces) == 0 {
		return nil, nil
	}
	var vals []any
	err := o.scripts.Retry(ctx, func() (err error) {
		vals, err = o.rdb.HMGet(ctx, o.space.Shard(shard).Leases(), nonces...).Result()
		return err
	})
	if err != nil {
		return nil, o.fail("read claims", err)
	}
	var out []Lease
	for i, v := range vals {
		s, ok := v.(string)
		if !ok {
			continue
		}
		l, err := parseLease(nonces[i], s)
		if err != nil {
			return nil, o.broken("read claims", "", "", err)
		}
		out = append(out, l)
	}
	return out, nil
}

// Release puts the rows of a claim back at once: no attempt is spent, nothing is written to history.
func (o *Redis) Release(ctx context.Context, shard int, l Lease) error {
	run, err := o.Run(ctx, shard, umbel.RunID(l.RunID))
	if err != nil || run == nil {
		return err
	}
	for part := range slices.Chunk(l.Ordinals, MaxSettle) {
		g := lua.Group{Verb: lua.Requeue, Nonce: l.Nonce, Attempt: 1, Route: l.Route}
		for _, ordinal := range part {
			g.Items = append(g.Items, lua.Item{Ordinal: ordinal})
		}
		if _, err := o.Settle(ctx, Settlement{Run: run, Groups: []lua.Group{g}}); err != nil {
			return err
		}
	}
	return nil
}

// Delivered marks claims whose rows have reached their worker.
func (o *Redis) Delivered(ctx context.Context, shard int, nonces []string) error {
	return o.fail("deliver", o.scripts.Deliver(ctx, o.space.Shard(shard).Leases(), nonces))
}
