package lua

import (
	_ "embed"
)

//go:embed commit.lua
var commitSource string

var commit = newScript("commit", commitSource)

// RouteKeys names a run's due set on a route, and the route.
type RouteKeys struct {
	Due, Set string
	Route    string
}

// Wake is where a script announces what others may wait for.
type Wake struct {
	Channel string
	Shard   int
}

// Commit makes what is staged a run.
type Commit struct {
	Run, Inputs, Workflow, History, Ready, Backlog, Runs string
	Routes                                               []RouteKeys

	ID          string
	Namespace   string
	WorkflowID  string
	Rows        int64
	Digest      []byte
	Types       []byte
	Started     []byte // the event
	ClosedEmpty []byte // the events that close a run without rows
	Wake        Wake
	MaxSeq      int64
	Sum         string // that all of it was staged with; empty: whatever is there
}

// Call returns the script's call.
func (p Commit) Call() Call {
	keys := append(make([]string, 0, 7+2*len(p.Routes)),
		p.Run, p.Inputs, p.Workflow, p.History, p.Ready, p.Backlog, p.Runs)
	args := append(make([]any, 0, 12+len(p.Routes)), p.ID, p.Namespace, p.WorkflowID, p.Rows, p.Digest, p.Types, p.Started,
		p.ClosedEmpty, p.Wake.Channel, p.Wake.Shard, p.MaxSeq, p.Sum)
	for _, r := range p.Routes {
		keys = append(keys, r.Due, r.Set)
		args = append(args, r.Route)
	}
	return Call{script: commit, keys: keys, args: args}
}

// CommitReply says what became of it.
type CommitReply struct {
	Outcome string // ok, again, exists, lost, other, routes, full
	Run     string // exists: the run that the workflow has
	Rows    int64  // ok, again, exists
	Digest  string // exists
	Number  int64  // lost, other: the next ordinal; routes: how many; full: the head
}

// ParseCommit reads the reply of a [Commit] call.
func ParseCommit(r Reply) (CommitReply, error) {
	out, v := CommitReply{Outcome: r.Outcome}, r.read()
	switch r.Outcome {
	case "ok", "again":
		out.Rows = v.int()
	case "exists":
		out.Run, out.Rows, out.Digest = v.string(), v.int(), v.string()
	case "lost", "other", "routes", "full":
		out.Number = v.int()
	default:
		return out, r.unexpected()
	}
	return out, v.err
}
