package outbox

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/keys"
	"github.com/umbelhq/umbel/internal/lua"
)

// StagingTTL is how long staged rows wait for the next call before they expire.
const StagingTTL = 10 * time.Minute

// Staging is where rows are collected before a commit or a dispatch makes them visible all at once.
type Staging struct {
	Namespace  string
	WorkflowID umbel.WorkflowID
	ID         umbel.StagingID
	Base       int64         // the ordinal that it begins at
	TTL        time.Duration // 0: StagingTTL
	taken      int64         // bytes of inputs that the run has which the rows are for
}

// viewCache remembers what a staging has, so that a call needs no read before it. A missing or an old view
// costs one more call.
type viewCache struct {
	mu    sync.Mutex
	views map[umbel.StagingID]lua.View
}

// maxCachedViews bounds the cache: more stagings than this are not under way at once on one server.
const maxCachedViews = 1024

func (c *viewCache) get(id umbel.StagingID) lua.View {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.views[id]
}

func (c *viewCache) put(id umbel.StagingID, v lua.View) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.views) >= maxCachedViews {
		clear(c.views)
	}
	c.views[id] = v
}

func (c *viewCache) drop(id umbel.StagingID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.views, id)
}

// Stage adds rows at an offset of a staging and returns where it goes on. Rows that are there already are
// acknowledged; a gap, or a staging that has expired, is umbel.ErrStagingLost. Rows must be valid, and at most
// umbel.MaxStageRows.
func (o *Redis) Stage(ctx context.Context, st Staging, offset int64, rows []umbel.StagedRow) (int64, error) {
	for len(rows) > maxPiece && varied(rows) {
		next, err := o.stagePiece(ctx, st, offset, rows[:maxPiece])
		if err != nil {
			return next, err
		}
		offset, rows = offset+maxPiece, rows[maxPiece:]
	}
	return o.stagePiece(ctx, st, offset, rows)
}

// maxPiece bounds the rows of one script call where each may be a span of its own, which costs Redis some
// 2 µs a row: the call stays well under 10 ms.
const maxPiece = 2000

// varied reports whether rows differ in what makes a span.
func varied(rows []umbel.StagedRow) bool {
	for i := 1; i < len(rows); i++ {
		a, b := &rows[i-1], &rows[i]
		if a.Type != b.Type || a.TaskQueue != b.TaskQueue || a.Node != b.Node || a.Delay != b.Delay || !a.NotBefore.Equal(b.NotBefore) {
			return true
		}
	}
	return false
}

func (o *Redis) stagePiece(ctx context.Context, st Staging, offset int64, rows []umbel.StagedRow) (int64, error) {
	view := o.views.get(st.ID)
	for range maxStageTries {
		p, err := o.stageParams(st, view, offset, rows)
		if err != nil {
			return 0, err
		}
		r, err := o.scripts.Stage(ctx, p)
		if err != nil {
			return 0, o.fail("stage", err)
		}
		if r.Outcome == "view" {
			view = r.View
			continue
		}
		return o.staged(st, p, r)
	}
	return 0, &umbel.Error{
		Code: umbel.CodeConflict, Op: "stage", WorkflowID: st.WorkflowID, RunID: st.ID, NotApplied: true,
		Reason: "others add to the same staging at the same time; start again",
	}
}

// maxStageTries is more than enough: a view is old once, unless two callers share a staging.
const maxStageTries = 5

func (o *Redis) staged(st Staging, p lua.Stage, r lua.StageReply) (int64, error) {
	e := &umbel.Error{Op: "stage", WorkflowID: st.WorkflowID, RunID: st.ID, NotApplied: true}
	switch r.Outcome {
	case "ok", "again":
		if r.Outcome == "ok" {
			o.views.put(st.ID, p.After)
		}
		return r.Next, nil
	case "limit":
		e = tooManyBytes("stage", st.WorkflowID, st.ID, st.taken+r.Bytes)
	case "committed":
		e.Code, e.Reason = umbel.CodeConflict, "this staging is committed already"
	default:
		e.Code, e.Reason = umbel.CodeStagingLost, "what was staged has expired, or rows before ordinal "+
			strconv.FormatInt(p.Offset, 10)+" are missing (the next is "+strconv.FormatInt(r.Next, 10)+"); start again"
	}
	o.views.drop(st.ID)
	return 0, e
}

// tooManyBytes refuses inputs that take a run to more bytes than it may have.
func tooManyBytes(op string, id umbel.WorkflowID, run umbel.RunID, bytes int64) *umbel.Error {
	return &umbel.Error{
		Code: umbel.CodeLimit, Op: op, WorkflowID: id, RunID: run, NotApplied: true,
		Field: "fan-out", Value: strconv.FormatInt(bytes, 10),
		Reason: "exceeds the limit of " + strconv.Itoa(umbel.MaxRunInputBytes) + " input bytes of a run",
	}
}

// FirstStage is the call that stages all rows of a staging, to be run in order with what commits them.
type FirstStage struct {
	Call   lua.Call
	Routes []string // their names
	Sum    string   // of the rows as they are staged
}

// StageCall packs all rows of a staging for one call.
func (o *Redis) StageCall(st Staging, rows []umbel.StagedRow) (FirstStage, error) {
	p, err := o.stageParams(st, lua.View{}, st.Base, rows)
	if err != nil {
		return FirstStage{}, err
	}
	p.Sum = checksum(p)
	_, names, err := parseRoutes(p.After.Routes)
	return FirstStage{Call: p.Call(), Routes: names, Sum: p.Sum}, err
}

// checksum tells what a call stages from anything else.
func checksum(p lua.Stage) string {
	h := sha256.New()
	add := func(b []byte) {
		_, _ = h.Write(binary.AppendUvarint(nil, uint64(len(b))))
		_, _ = h.Write(b)
	}
	add([]byte(p.After.Routes))
	add([]byte(p.After.ContentType))
	add([]byte(fmt.Sprint(p.After.ChunkRows, p.Offset, p.Count, p.Spans)))
	for _, f := range p.Fields {
		add([]byte(f.Name))
		add(f.Bytes)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Staged returns the names of the routes that a staging has.
func (o *Redis) Staged(ctx context.Context, st Staging) ([]string, error) {
	view, err := o.stagedView(ctx, st)
	if err != nil {
		return nil, err
	}
	_, names, err := parseRoutes(view.Routes)
	return names, err
}

func (o *Redis) stagedView(ctx context.Context, st Staging) (lua.View, error) {
	if v := o.views.get(st.ID); v.RouteCount > 0 {
		return v, nil
	}
	var s string
	key := o.Shard(st.Namespace, st.WorkflowID).Run(string(st.ID)).Record()
	err := o.scripts.Retry(ctx, func() error {
		vals, err := o.rdb.HMGet(ctx, key, "routes").Result()
		if err == nil {
			s, _ = vals[0].(string)
		}
		return err
	})
	if err != nil {
		return lua.View{}, o.fail("read staging", err)
	}
	return lua.View{Routes: s}, nil
}

// Forget drops what is remembered of a staging, so that it is read anew.
func (o *Redis) Forget(st Staging) { o.views.drop(st.ID) }

// Discard forgets what was staged, unless it is committed.
func (o *Redis) Discard(ctx context.Context, st Staging) error {
	names, err := o.Staged(ctx, st)
	if err != nil {
		return err
	}
	sh := o.Shard(st.Namespace, st.WorkflowID)
	run := sh.Run(string(st.ID))
	o.views.drop(st.ID)
	err = o.scripts.Retry(ctx, func() error {
		return o.rdb.Watch(ctx, func(tx *redis.Tx) error {
			status, err := tx.HGet(ctx, run.Record(), "status").Result()
			if errors.Is(err, redis.Nil) || err == nil && status != "staging" { // nothing there, or a run
				return nil
			} else if err != nil {
				return err
			}
			_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
				drop := []string{run.Record(), run.Inputs()}
				for i := range names {
					drop = append(drop, run.Due(i))
				}
				p.Unlink(ctx, drop...)
				return nil
			})
			return err
		}, run.Record())
	})
	return o.fail("discard", err)
}

// stageParams packs rows for the script: inputs into chunks, instants into spans, routes into the table.
func (o *Redis) stageParams(st Staging, view lua.View, offset int64, rows []umbel.StagedRow) (lua.Stage, error) {
	sh := o.Shard(st.Namespace, st.WorkflowID)
	run := sh.Run(string(st.ID))
	_, names, err := parseRoutes(view.Routes)
	if err != nil {
		return lua.Stage{}, o.broken("stage", st.WorkflowID, st.ID, err)
	}
	pk := packer{namespace: st.Namespace, names: names, index: map[route]int{}, view: view}
	for i, n := range names {
		r, _ := keys.ParseRoute(n)
		pk.index[route{r.TaskQueue, r.Node, r.Type}] = i
	}
	if view.ChunkRows == 0 {
		pk.view.ChunkRows, pk.view.ContentType = chunkRows(rows), rows[0].Input.ContentType
	}
	if err := pk.pack(offset, rows); err != nil {
		return lua.Stage{}, err
	}
	p := lua.Stage{
		Run: run.Record(), Inputs: run.Inputs(), Base: st.Base, Offset: offset, Count: len(rows),
		TTL: cmp.Or(st.TTL, StagingTTL).Milliseconds(), Before: view, After: pk.after(),
		Bytes: pk.bytes, MaxBytes: umbel.MaxRunInputBytes - st.taken, Large: pk.large, Keyed: pk.keyed, Fields: pk.fields, Spans: pk.spans,
	}
	for i := range p.After.RouteCount {
		p.Due = append(p.Due, run.Due(i))
	}
	return p, nil
}

// chunkRows chooses how many rows a chunk has, by the first rows that are staged.
func chunkRows(rows []umbel.StagedRow) int {
	bytes := 0
	for _, r := range rows {
		bytes += len(r.Input.Data) + len(r.Key) + 3
	}
	return min(max(chunkBytes*len(rows)/max(bytes, 1), 1), maxChunkRows)
}

// route is what differs between the routes of a run.
type route struct{ queue, node, activity string }

type packer struct {
	namespace string
	view      lua.View
	names     []string
	index     map[route]int
	fields    []lua.Field
	spans     []lua.Span
	bytes     int64
	large     bool
	keyed     bool
}

func (p *packer) after() lua.View {
	v := p.view
	v.RouteCount = len(p.names)
	v.Routes = ""
	for i, n := range p.names {
		if i > 0 {
			v.Routes += "\n"
		}
		v.Routes += n
	}
	return v
}

func (p *packer) pack(offset int64, rows []umbel.StagedRow) error {
	k := int64(p.view.ChunkRows)
	var large []lua.Field
	for i := 0; i < len(rows); {
		first := offset + int64(i)
		n := min(int(k-first%k), len(rows)-i)
		budget := maxChunkBytes
		if n < int(k) { // a part of a chunk gets its share, whatever the other parts take
			budget = maxChunkBytes * n / int(k)
		}
		chunk := make([]byte, 0, min(budget, chunkBytes+chunkBytes/4))
		for j, r := range rows[i : i+n] {
			at, err := p.route(r)
			if err != nil {
				return err
			}
			in := input{route: at, key: r.Key, payload: r.Input}
			in.large = len(chunk)+len(r.Input.Data) > budget
			if in.large {
				p.large = true
				large = append(large, lua.Field{Name: "b" + strconv.FormatInt(first+int64(j), 10), Bytes: r.Input.Data})
			}
			chunk = in.append(chunk, p.view.ContentType)
			p.bytes += int64(len(r.Input.Data))
			p.keyed = p.keyed || r.Key != ""
			p.span(first+int64(j), at, r)
		}
		p.fields = append(p.fields, lua.Field{Name: strconv.FormatInt(first/k, 10), Bytes: chunk})
		i += n
	}
	p.fields = append(p.fields, large...)
	return nil
}

func (p *packer) route(r umbel.StagedRow) (int, error) {
	q := cmp.Or(r.TaskQueue, umbel.DefaultTaskQueue)
	if i, ok := p.index[route{q, r.Node, r.Type}]; ok {
		return i, nil
	}
	if len(p.names) == umbel.MaxRoutes {
		return 0, umbel.Limit("fan-out", umbel.MaxRoutes+1,
			"routes of a run (distinct activity type, task queue and node)", umbel.MaxRoutes)
	}
	i := len(p.names)
	p.index[route{q, r.Node, r.Type}] = i
	p.names = append(slices.Clip(p.names), keys.Route{
		Namespace: p.namespace, TaskQueue: q, Node: r.Node, Type: r.Type, Priority: keys.DefaultPriority,
	}.String())
	return i, nil
}

// span adds an ordinal to the last span, or begins one.
func (p *packer) span(ordinal int64, route int, r umbel.StagedRow) {
	s := lua.Span{Route: route, Delay: r.Delay.Milliseconds(), First: ordinal, Last: ordinal}
	if !r.NotBefore.IsZero() {
		s.NotBefore = CeilMilli(r.NotBefore).UnixMilli()
	}
	if n := len(p.spans); n > 0 {
		t := &p.spans[n-1]
		if t.Last == ordinal-1 && t.Route == s.Route && t.Delay == s.Delay && t.NotBefore == s.NotBefore {
			t.Last = ordinal
			return
		}
	}
	p.spans = append(p.spans, s)
}
