package lua

import (
	"context"
	_ "embed"
)

//go:embed dispatch.lua
var dispatchSource string

var dispatch = newScript("dispatch", dispatchSource)

// DispatchRoute names the due set of a route as staged and as it becomes.
type DispatchRoute struct {
	Staged string
	RouteKeys
}

// Fence is what a write from outside expects. The zero Fence expects nothing.
type Fence struct {
	Token string
	Head  int64
}

// args are the token and the head as scripts want them, empty for whichever.
func (f Fence) args() (token, head any) {
	if f.Token == "" {
		return "", ""
	}
	return f.Token, f.Head
}

// Dispatch adds what is staged to a run that is written from outside.
type Dispatch struct {
	Staged, StagedInputs, Run, Inputs, Workflow, History, Ready, Backlog, Runs string
	Routes                                                                     []DispatchRoute

	ID         string
	Namespace  string
	WorkflowID string
	Base       int64
	Count      int
	Fence      Fence
	Events     bool
	Wake       Wake
	MaxSeq     int64
	MaxBytes   int64 // of the inputs of a run
}

// DispatchReply says what became of it.
type DispatchReply struct {
	Outcome string // ok, fenced, conflict, moved, run, taken, closed, lost, full, limit
	Number  int64  // ok, conflict, full: the head; moved: the run's n; lost: the next ordinal; limit: bytes
	Text    string // run: the current run; closed: its status
}

// Dispatch runs the script.
func (s *Scripts) Dispatch(ctx context.Context, p Dispatch) (DispatchReply, error) {
	keys := append(make([]string, 0, 9+3*len(p.Routes)),
		p.Staged, p.StagedInputs, p.Run, p.Inputs, p.Workflow, p.History, p.Ready, p.Backlog, p.Runs)
	token, head := p.Fence.args()
	events := 0
	if p.Events {
		events = 1
	}
	args := append(make([]any, 0, 12+len(p.Routes)), p.ID, p.Namespace, p.WorkflowID, p.Base, p.Count, token, head, events,
		p.Wake.Channel, p.Wake.Shard, p.MaxSeq, p.MaxBytes)
	for _, r := range p.Routes {
		keys = append(keys, r.Staged, r.Due, r.Set)
		args = append(args, r.Route)
	}
	r, err := s.run(ctx, Call{script: dispatch, keys: keys, args: args})
	if err != nil {
		return DispatchReply{}, err
	}
	out, v := DispatchReply{Outcome: r.Outcome}, r.read()
	switch r.Outcome {
	case "ok", "conflict", "moved", "lost", "full", "limit":
		out.Number = v.int()
	case "run", "closed":
		out.Text = v.string()
	case "fenced", "taken":
	default:
		return out, r.unexpected()
	}
	return out, v.err
}
