package lua

import (
	"context"
	_ "embed"
)

//go:embed cancel.lua
var cancelSource string

var cancel = newScript("cancel", cancelSource)

// Cancel cancels what is open of a run.
type Cancel struct {
	RunKeys
	Ready, Backlog, Runs string
	Routes               []RouteKeys

	ID        string
	Requested []byte // the event
	Closing   []byte // the events that close the run
	Wake      Wake
	MaxSeq    int64
}

// CancelReply says what became of it.
type CancelReply struct {
	Outcome   string // ok, absent, closed, routes, full
	Cancelled int64
	Head      int64
	Status    string
	Routes    int64
}

// Cancel runs the script.
func (s *Scripts) Cancel(ctx context.Context, p Cancel) (CancelReply, error) {
	keys := append(make([]string, 0, 9+2*len(p.Routes)),
		p.Run, p.Workflow, p.History, p.Rows, p.Resolved, p.Rest, p.Ready, p.Backlog, p.Runs)
	args := append(make([]any, 0, 6+len(p.Routes)), p.ID, p.Requested, p.Closing, p.Wake.Channel, p.Wake.Shard, p.MaxSeq)
	for _, r := range p.Routes {
		keys = append(keys, r.Due, r.Set)
		args = append(args, r.Route)
	}
	r, err := s.run(ctx, Call{script: cancel, keys: keys, args: args})
	if err != nil {
		return CancelReply{}, err
	}
	out, v := CancelReply{Outcome: r.Outcome}, r.read()
	switch r.Outcome {
	case "ok":
		out.Cancelled, out.Head = v.int(), v.int()
	case "closed":
		out.Status = v.string()
	case "routes":
		out.Routes = v.int()
	case "full":
		out.Head = v.int()
	case "absent":
	default:
		return out, r.unexpected()
	}
	return out, v.err
}
