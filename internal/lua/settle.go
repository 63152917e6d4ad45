package lua

import (
	_ "embed"
)

//go:embed settle.lua
var settleSource string

var settle = newScript("settle", settleSource)

// Verb is what is done to rows.
type Verb string

// The verbs.
const (
	Complete Verb = "c"
	Fail     Verb = "f"
	CancelIt Verb = "x"
	Requeue  Verb = "q"
)

// Item is a row of a [Group].
type Item struct {
	Ordinal int64
	Event   []byte // encoded; empty to write none
	// Requeue only:
	Due   int64  // the instant, ms; negative or 0: so long from now
	Tries string // tries spent; empty: as before
	Error []byte // of the attempt; empty: as before
	Span  string // the span that a fresh row may be in
}

// Group is rows of one claim, or of none, that end the same way. It names an ordinal only once.
type Group struct {
	Verb     Verb
	Nonce    string // the claim that must hold the rows; empty: whichever
	Attempt  int
	Route    int
	Preamble []byte
	Items    []Item
}

// RunKeys names what belongs to a run and its workflow.
type RunKeys struct {
	Run, Workflow, History, Rows, Resolved, Failed, Cancelled, Rest, Muted, Attempts string
}

// Closings are the encoded events that close a run, by its status.
type Closings struct {
	Completed, Failed, Cancelled []byte
}

// Settle records what became of rows of one run.
type Settle struct {
	RunKeys
	Claims, Leases, Ready, Backlog, Runs string
	Routes                               []RouteKeys

	ID       string
	Lapse    string // nonce of the claim that lapses
	Fence    Fence
	Closings Closings // empty for a run that does not close by itself
	Wake     Wake
	MaxSeq   int64
	Groups   []Group
}

// events is how many events the call may write.
func (p Settle) events() int64 {
	var n int64
	for _, g := range p.Groups {
		for _, it := range g.Items {
			switch {
			case len(it.Event) == 0:
			case g.Verb == Requeue:
				n += 2
			default:
				n++
			}
		}
	}
	if n > 0 && len(p.Closings.Completed) > 0 {
		n += 2
	}
	return n
}

// Call returns the script's call.
func (p Settle) Call() Call {
	keys := append(make([]string, 0, 15+2*len(p.Routes)),
		p.Run, p.Workflow, p.History, p.Rows, p.Resolved, p.Failed, p.Cancelled, p.Rest, p.Muted, p.Attempts,
		p.Claims, p.Leases, p.Ready, p.Backlog, p.Runs)
	token, head := p.Fence.args()
	args := append(make([]any, 0, 64), p.ID, p.Lapse, token, head, p.Closings.Completed, p.Closings.Failed, p.Closings.Cancelled,
		p.Wake.Channel, p.Wake.Shard, p.MaxSeq-p.events(), len(p.Routes), len(p.Groups))
	for _, r := range p.Routes {
		keys = append(keys, r.Due, r.Set)
		args = append(args, r.Route)
	}
	for _, g := range p.Groups {
		args = append(args, string(g.Verb), g.Nonce, g.Attempt, g.Route, g.Preamble, len(g.Items))
		for _, it := range g.Items {
			args = append(args, it.Ordinal, it.Event)
			if g.Verb == Requeue {
				args = append(args, it.Due, it.Tries, it.Error, it.Span)
			}
		}
	}
	return Call{script: settle, keys: keys, args: args}
}

// Exception is an item that was not accepted.
type Exception struct {
	Group, Item int
	Code        byte // d dropped, s stale, n no such ordinal, v not in the span
	Attempt     int  // d: the attempt that was recorded, 0 if it was cancelled
}

// SettleReply says what became of it. Items that are in no exception were accepted.
type SettleReply struct {
	Outcome    string // ok, absent, closed, routes, fenced, conflict, live, full
	Status     string // ok, closed
	Number     int64  // ok, conflict, full: the head; routes: how many; live: the deadline
	Exceptions []Exception
}

// ParseSettle reads the reply of a [Settle] call.
func ParseSettle(r Reply) (SettleReply, error) {
	out, v := SettleReply{Outcome: r.Outcome}, r.read()
	switch r.Outcome {
	case "ok":
		out.Status, out.Number = v.string(), v.int()
		for v.more() {
			x := v.list()
			e := Exception{Group: int(x.int()) - 1, Item: int(x.int()) - 1}
			code := x.string()
			e.Attempt = int(x.int())
			if x.err != nil || len(code) != 1 {
				v.fail("has an exception of the wrong shape")
				break
			}
			e.Code = code[0]
			out.Exceptions = append(out.Exceptions, e)
		}
	case "closed":
		out.Status = v.string()
	case "routes", "conflict", "live", "full":
		out.Number = v.int()
	case "absent", "fenced":
	default:
		return out, r.unexpected()
	}
	return out, v.err
}
