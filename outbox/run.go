package outbox

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/keys"
	"github.com/umbelhq/umbel/internal/lua"
)

// Run is what does not change of a run, except that its routes and rows may grow if it is written from
// outside. It is shared: do not change it.
type Run struct {
	ID          umbel.RunID
	Namespace   string
	WorkflowID  umbel.WorkflowID
	Shard       keys.Shard
	Keys        keys.Run
	ChunkRows   int64
	ContentType string // that its inputs share
	Keyed       bool   // some rows have a key
	Served      bool   // a server started it and closes it; else it is written from outside
	Routes      []keys.Route
	Names       []string // of the routes, encoded
	Types       map[string]umbel.TypePolicy
}

// Public returns the run's ID as callers know it: the implicit run has none.
func (r *Run) Public() umbel.RunID {
	if r.ID == implicitRun(r.Namespace, r.WorkflowID) {
		return ""
	}
	return r.ID
}

// Policy returns how rows of a type are treated.
func (r *Run) Policy(activityType string) umbel.TypePolicy {
	if p, ok := r.Types[activityType]; ok {
		return p
	}
	return umbel.TypePolicy{Type: activityType}
}

func (r *Run) hasType(activityType string) bool {
	return slices.ContainsFunc(r.Routes, func(k keys.Route) bool { return k.Type == activityType })
}

func (r *Run) routeKeys() []lua.RouteKeys { return routeKeys(r.Shard, r.Keys, r.Names) }

func routeKeys(shard keys.Shard, run keys.Run, names []string) []lua.RouteKeys {
	out := make([]lua.RouteKeys, len(names))
	for i, name := range names {
		out[i] = lua.RouteKeys{Due: run.Due(i), Set: shard.Route(name), Route: name}
	}
	return out
}

// implicitRun is the ID of the run that rows without one belong to. It follows from the names, so that every
// store finds it.
func implicitRun(namespace string, id umbel.WorkflowID) umbel.RunID {
	sum := sha256.Sum256([]byte(namespace + "\x00" + string(id)))
	return umbel.RunID("implicit" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:18]))
}

// RunOr returns id, or the implicit run's if it is empty.
func RunOr(namespace string, wf umbel.WorkflowID, id umbel.RunID) umbel.RunID {
	if id == "" {
		return implicitRun(namespace, wf)
	}
	return id
}

// cache keeps runs that were read, by ID. Dropping any of them is right at any time. It keeps served ones only: their
// IDs are random, and no other run has ever the same. The ID of a run that is written from outside comes again after
// Redis was emptied or restored, with other chunks and routes.
type cache struct {
	mu   sync.Mutex
	runs map[umbel.RunID]*Run
}

// maxCachedRuns bounds the cache to a few MB.
const maxCachedRuns = 8192

func (c *cache) get(id umbel.RunID) *Run {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs[id]
}

func (c *cache) put(r *Run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.runs) >= maxCachedRuns {
		drop := maxCachedRuns / 4
		for id := range c.runs { // in no order: as good as any other for a cache of this kind
			delete(c.runs, id)
			if drop--; drop == 0 {
				break
			}
		}
	}
	c.runs[r.ID] = r
}

func (c *cache) drop(id umbel.RunID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.runs, id)
}

var runFields = []string{"ns", "wf", "k", "type", "keyed", "auto", "routes", "types"}

// Run returns a run of a shard, or nil if there is none.
func (o *Redis) Run(ctx context.Context, shard int, id umbel.RunID) (*Run, error) {
	if r := o.runs.get(id); r != nil && r.Shard.Index == shard {
		return r, nil
	}
	return o.reload(ctx, shard, id)
}

// Reload reads a run anew that has grown since it was read.
func (o *Redis) Reload(ctx context.Context, run *Run) (*Run, error) {
	r, err := o.reload(ctx, run.Shard.Index, run.ID)
	if err == nil && r == nil {
		err = &umbel.Error{Code: umbel.CodeNotFound, Op: "read run", WorkflowID: run.WorkflowID, RunID: run.ID, NotApplied: true}
	}
	return r, err
}

// reload reads a run past the cache.
func (o *Redis) reload(ctx context.Context, shard int, id umbel.RunID) (*Run, error) {
	k := o.space.Shard(shard).Run(string(id))
	var vals []any
	err := o.scripts.Retry(ctx, func() (err error) {
		vals, err = o.rdb.HMGet(ctx, k.Record(), runFields...).Result()
		return err
	})
	if err != nil {
		return nil, o.fail("read run", err)
	}
	if vals[0] == nil { // absent, or staged only
		o.runs.drop(id)
		return nil, nil //nolint:nilnil // documented: no run is no error
	}
	fields := make(map[string]string, len(vals))
	for i, name := range runFields {
		fields[name], _ = vals[i].(string)
	}
	r, err := o.parseRun(shard, id, fields)
	if err == nil && r.Served {
		o.runs.put(r)
	}
	return r, err
}

// parseRun reads a run's record, or the part of it that does not change.
func (o *Redis) parseRun(shard int, id umbel.RunID, fields map[string]string) (*Run, error) {
	sh := o.space.Shard(shard)
	r := &Run{
		ID: id, Namespace: fields["ns"], WorkflowID: umbel.WorkflowID(fields["wf"]), Shard: sh, Keys: sh.Run(string(id)),
		ContentType: fields["type"], Keyed: fields["keyed"] != "", Served: fields["auto"] == "1",
	}
	var err error
	if r.ChunkRows, err = strconv.ParseInt(fields["k"], 10, 64); err != nil || r.ChunkRows < 1 {
		r.ChunkRows = 1 // a run without rows has no chunks
	}
	if r.Routes, r.Names, err = parseRoutes(fields["routes"]); err != nil {
		return nil, o.broken("read run", r.WorkflowID, id, err)
	}
	if t := fields["types"]; t != "" {
		if r.Types, err = parseTypes(t); err != nil {
			return nil, o.broken("read run", r.WorkflowID, id, err)
		}
	}
	return r, nil
}

// The table of routes is their names, a line each: names hold no control characters.
func parseRoutes(table string) ([]keys.Route, []string, error) {
	if table == "" {
		return nil, nil, nil
	}
	names := strings.Split(table, "\n")
	routes := make([]keys.Route, len(names))
	for i, n := range names {
		var ok bool
		if routes[i], ok = keys.ParseRoute(n); !ok {
			return nil, nil, fmt.Errorf("table of routes is damaged: %.60q", n)
		}
	}
	return routes, names, nil
}

// storedPolicy is how a type's policy is kept with its run.
type storedPolicy struct {
	Type         string   `json:"type"`
	InitialMS    int64    `json:"initial_ms"`
	CapMS        int64    `json:"cap_ms"`
	Factor       float64  `json:"factor"`
	Jitter       float64  `json:"jitter"`
	Attempts     int      `json:"attempts"`
	NonRetryable []string `json:"non_retryable,omitempty"`
	StartToClose int64    `json:"start_to_close_ms,omitempty"`
}

// EncodeTypes encodes policies, defaults applied, as they are kept with a run.
func EncodeTypes(types []umbel.TypePolicy) ([]byte, error) {
	out := make([]storedPolicy, len(types))
	for i, t := range types {
		p := t.Retry.WithDefaults()
		out[i] = storedPolicy{
			Type: t.Type, InitialMS: p.Initial.Milliseconds(), CapMS: p.Cap.Milliseconds(), Factor: p.Factor,
			Jitter: p.Jitter, Attempts: p.MaxAttempts, NonRetryable: p.NonRetryable,
			StartToClose: t.StartToClose.Milliseconds(),
		}
	}
	b, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encode policies: %w", err)
	}
	return b, nil
}

func parseTypes(s string) (map[string]umbel.TypePolicy, error) {
	var stored []storedPolicy
	if err := json.Unmarshal([]byte(s), &stored); err != nil {
		return nil, fmt.Errorf("policies are damaged: %w", err)
	}
	out := make(map[string]umbel.TypePolicy, len(stored))
	for _, p := range stored {
		out[p.Type] = umbel.TypePolicy{
			Type: p.Type, StartToClose: time.Duration(p.StartToClose) * time.Millisecond,
			Retry: umbel.RetryPolicy{
				Initial: time.Duration(p.InitialMS) * time.Millisecond, Cap: time.Duration(p.CapMS) * time.Millisecond,
				Factor: p.Factor, Jitter: p.Jitter, MaxAttempts: p.Attempts, NonRetryable: p.NonRetryable,
			},
		}
	}
	return out, nil
}
