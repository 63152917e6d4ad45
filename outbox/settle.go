package outbox

import (
	"context"
	"fmt"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/lua"
)

// MaxSettle bounds the items of one settle script, so that it stays well under 10 ms.
const MaxSettle = 250

// Settlement is what becomes of rows of one run, in one step.
type Settlement struct {
	Run      *Run
	Lapse    string // nonce of the claim whose lapse this is
	Fence    lua.Fence
	Closings lua.Closings
	Groups   []lua.Group
}

// maxSequence is what a double, and so Lua, can count to.
const maxSequence = 1<<53 - 1

func (o *Redis) settleCall(s Settlement) lua.Call {
	sh := s.Run.Shard
	if !s.Run.Served {
		s.Closings = lua.Closings{}
	}
	return lua.Settle{
		RunKeys: o.RunKeys(s.Run),
		Claims:  sh.Claims(), Leases: sh.Leases(), Ready: sh.Ready(), Backlog: sh.Backlog(), Runs: sh.Runs(s.Run.Namespace),
		Routes: s.Run.routeKeys(), ID: string(s.Run.ID), Lapse: s.Lapse, Fence: s.Fence, Closings: s.Closings,
		Wake: o.Wake(sh.Index), MaxSeq: maxSequence, Groups: s.Groups,
	}.Call()
}

// RunKeys names what belongs to a run.
func (o *Redis) RunKeys(r *Run) lua.RunKeys {
	wf := r.Shard.Workflow(r.Namespace, string(r.WorkflowID))
	k := r.Keys
	return lua.RunKeys{
		Run: k.Record(), Workflow: wf.Record, History: wf.History, Rows: k.Rows(), Resolved: k.Resolved(),
		Failed: k.Failed(), Cancelled: k.Cancelled(), Rest: k.Rest(), Muted: k.Muted(), Attempts: k.Attempts(),
	}
}

// RouteKeys names a run's due sets and routes.
func (o *Redis) RouteKeys(r *Run) []lua.RouteKeys { return r.routeKeys() }

// StagedRoutes names the due sets and routes of what is staged.
func (o *Redis) StagedRoutes(st Staging, names []string) []lua.RouteKeys {
	sh := o.Shard(st.Namespace, st.WorkflowID)
	return routeKeys(sh, sh.Run(string(st.ID)), names)
}

// Wake is where scripts announce what others may wait for.
func (o *Redis) Wake(shard int) lua.Wake { return lua.Wake{Channel: o.space.Channel(), Shard: shard} }

// Settle applies one settlement. A group names an ordinal only once and all have at most [MaxSettle] items.
func (o *Redis) Settle(ctx context.Context, s Settlement) (lua.SettleReply, error) {
	replies, errs := o.SettleAll(ctx, []Settlement{s})
	return replies[0], errs[0]
}

// SettleAll applies settlements in one round trip, each on its own: replies and errors stand at their indices.
func (o *Redis) SettleAll(ctx context.Context, all []Settlement) ([]lua.SettleReply, []error) {
	calls := make([]lua.Call, len(all))
	for i, s := range all {
		calls[i] = o.settleCall(s)
	}
	raw, errs := o.scripts.RunAll(ctx, calls)
	replies := make([]lua.SettleReply, len(all))
	for i := range all {
		if errs[i] == nil {
			replies[i], errs[i] = lua.ParseSettle(raw[i])
		}
		if errs[i] == nil && replies[i].Outcome == "routes" { // the run has grown since it was read
			replies[i], errs[i] = o.settleAnew(ctx, all[i])
		}
		errs[i] = o.fail("settle", errs[i])
	}
	return replies, errs
}

func (o *Redis) settleAnew(ctx context.Context, s Settlement) (lua.SettleReply, error) {
	for {
		run, err := o.reload(ctx, s.Run.Shard.Index, s.Run.ID)
		if err != nil {
			return lua.SettleReply{}, err
		}
		if run == nil {
			return lua.SettleReply{Outcome: "absent"}, nil
		}
		s.Run = run
		raw, err := o.scripts.Run(ctx, o.settleCall(s))
		if err != nil {
			return lua.SettleReply{}, err
		}
		r, err := lua.ParseSettle(raw)
		if err != nil || r.Outcome != "routes" {
			return r, err
		}
		if err := ctx.Err(); err != nil {
			return r, fmt.Errorf("run grows faster than it is read: %w", err)
		}
	}
}

// lookup finds the run of a key, nil if there is no such workflow.
func (o *Redis) lookup(ctx context.Context, k Key) (*Run, error) {
	id, err := o.Current(ctx, k.Namespace, k.WorkflowID)
	if err != nil || id == "" {
		return nil, err
	}
	return o.Run(ctx, o.Shard(k.Namespace, k.WorkflowID).Index, id)
}

// change applies a verb to a row of the store, by key. An absent row is left alone.
func (o *Redis) change(ctx context.Context, op string, k Key, verb lua.Verb, item lua.Item) error {
	if err := k.validate(); err != nil {
		return err
	}
	k.Namespace = Row{Namespace: k.Namespace}.WithDefaults().Namespace
	run, err := o.lookup(ctx, k)
	if err != nil || run == nil {
		return err
	}
	item.Ordinal = k.Ordinal
	for range maxCarve {
		vs, err := o.peek(ctx, run, k.Ordinal)
		if err != nil {
			return err
		}
		v := &vs[0]
		if v.status == "" || v.status.Terminal() {
			return nil
		}
		if verb == lua.Requeue && v.fresh { // anything else leaves a hole in the span
			if err := o.locate(ctx, run, vs, spans{}); err != nil {
				return err
			}
			item.Span = v.span
		}
		g := lua.Group{Verb: verb, Attempt: 1 + v.tries, Route: v.route, Items: []lua.Item{item}}
		r, err := o.Settle(ctx, Settlement{Run: run, Groups: []lua.Group{g}})
		if err != nil {
			return err
		}
		if r.Outcome == "ok" && len(r.Exceptions) == 1 && r.Exceptions[0].Code == 'v' {
			continue // the span moved between the read and the step
		}
		return nil
	}
	return &umbel.Error{
		Code: umbel.CodeConflict, Op: op, WorkflowID: k.WorkflowID, NotApplied: true,
		Reason: "the row moved with every try; try again",
	}
}

// maxCarve bounds how often a moving span is chased.
const maxCarve = 100
