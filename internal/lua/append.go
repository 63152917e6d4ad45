package lua

import (
	"context"
	_ "embed"
)

//go:embed append.lua
var appendSource string

var appendEvents = newScript("append", appendSource)

// Append adds events at a fenced position.
type Append struct {
	Workflow, History string
	Fence             Fence
	Count             int
	Events            []byte
	MaxSeq            int64
}

// AppendReply says what became of it.
type AppendReply struct {
	Outcome string // ok, fenced, conflict, full
	Head    int64
}

// Append runs the script.
func (s *Scripts) Append(ctx context.Context, p Append) (AppendReply, error) {
	r, err := s.run(ctx, Call{
		script: appendEvents, keys: []string{p.Workflow, p.History},
		args: []any{p.Fence.Token, p.Fence.Head, p.Count, p.Events, p.MaxSeq},
	})
	if err != nil {
		return AppendReply{}, err
	}
	out, v := AppendReply{Outcome: r.Outcome}, r.read()
	switch r.Outcome {
	case "ok", "conflict", "full":
		out.Head = v.int()
	case "fenced":
	default:
		return out, r.unexpected()
	}
	return out, v.err
}
