package lua

import (
	"context"
	_ "embed"
)

//go:embed stage.lua
var stageSource string

var stage = newScript("stage", stageSource)

// Field is a field of an inputs hash.
type Field struct {
	Name  string
	Bytes []byte
}

// Span is consecutive ordinals that share a route and an instant.
type Span struct {
	Route       int
	Delay       int64 // ms after the staging began
	NotBefore   int64 // ms since 1970, or 0
	First, Last int64
}

// View is what a caller must know of a staging to add to it.
type View struct {
	ChunkRows   int
	ContentType string
	Routes      string // the table of routes, encoded
	RouteCount  int
}

// Stage adds rows to a staging.
type Stage struct {
	Run, Inputs string
	Due         []string // of every route, those that this call adds included
	Base        int64
	Offset      int64
	Count       int
	TTL         int64 // ms
	Before      View  // what the caller knew
	After       View  // with the routes that this call adds
	Bytes       int64
	MaxBytes    int64
	Large       bool // an input here has a field of its own
	Keyed       bool // an input here has a key
	Fields      []Field
	Spans       []Span
}

// Call returns the script's call.
func (p Stage) Call() Call {
	keys := make([]string, 0, 2+len(p.Due))
	keys = append(append(keys, p.Run, p.Inputs), p.Due...)
	args := make([]any, 0, 13+2*len(p.Fields)+5*len(p.Spans))
	flags := 0
	if p.Large {
		flags = 1
	}
	if p.Keyed {
		flags += 2
	}
	args = append(args, p.Base, p.Offset, p.Count, p.TTL, p.After.ChunkRows, p.After.ContentType, p.Bytes, p.MaxBytes,
		p.Before.RouteCount, p.After.RouteCount, p.After.Routes, flags, len(p.Fields))
	for _, f := range p.Fields {
		args = append(args, f.Name, f.Bytes)
	}
	for _, s := range p.Spans {
		args = append(args, s.Route, s.Delay, s.NotBefore, s.First, s.Last)
	}
	return Call{script: stage, keys: keys, args: args}
}

// StageReply says what became of it. Next is where the staging goes on; Bytes is set for "limit", View for
// "view".
type StageReply struct {
	Outcome string // ok, again, lost, committed, limit, view
	Next    int64
	Bytes   int64
	View    View
}

// ParseStage reads the reply of a [Stage] call.
func ParseStage(r Reply) (StageReply, error) {
	out, v := StageReply{Outcome: r.Outcome}, r.read()
	switch r.Outcome {
	case "ok", "again", "lost":
		out.Next = v.int()
	case "committed":
	case "limit":
		out.Bytes = v.int()
	case "view":
		out.View.ChunkRows = int(v.int())
		out.View.ContentType = v.string()
		out.View.Routes = v.string()
		out.View.RouteCount = int(v.int())
	default:
		return out, r.unexpected()
	}
	return out, v.err
}

// Stage runs the script.
func (s *Scripts) Stage(ctx context.Context, p Stage) (StageReply, error) {
	r, err := s.run(ctx, p.Call())
	if err != nil {
		return StageReply{}, err
	}
	return ParseStage(r)
}
