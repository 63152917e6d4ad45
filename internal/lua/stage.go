package lua

import (
	"context"
	_ "embed"
	"fmt"
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
	Sum         string // of what is staged here, if all of it is in one call
}

// Call returns the script's call.
func (p Stage) Call() Call {
	keys := make([]string, 0, 2+len(p.Due))
	keys = append(append(keys, p.Run, p.Inputs), p.Due...)
	args := make([]any, 0, 16+2*len(p.Fields)+2*len(p.Spans))
	flags := 0
	if p.Large {
		flags = 1
	}
	if p.Keyed {
		flags += 2
	}
	args = append(args, p.Base, p.Offset, p.Count, p.TTL, p.After.ChunkRows, p.After.ContentType, p.Bytes, p.MaxBytes,
		p.Before.RouteCount, p.After.RouteCount, p.After.Routes, flags, len(p.Fields))
	groups, last := p.groups()
	args = append(args, len(groups), last+1, p.Sum)
	for _, f := range p.Fields {
		args = append(args, f.Name, f.Bytes)
	}
	for _, g := range groups {
		args = append(args, g.of.Route, g.of.Delay, g.of.NotBefore, g.rows, len(g.members))
		args = append(args, g.members...)
	}
	return Call{script: stage, keys: keys, args: args}
}

// spanGroup is spans that share a route and an instant. A script that has them together reads 10,000 of them in
// a third of the time.
type spanGroup struct {
	of      Span // without ordinals
	rows    int64
	members []any
}

// groups are the spans by what they share, in the order in which each appears; last is the index of the group
// that has the last span.
func (p Stage) groups() (groups []*spanGroup, last int) {
	index := map[Span]int{}
	for _, s := range p.Spans {
		of := Span{Route: s.Route, Delay: s.Delay, NotBefore: s.NotBefore}
		i, ok := index[of]
		if !ok {
			i = len(groups)
			index[of] = i
			groups = append(groups, &spanGroup{of: of})
		}
		g := groups[i]
		g.rows += s.Last - s.First + 1
		g.members = append(g.members, fmt.Sprintf("%08df%08d", s.First, s.Last))
		last = i
	}
	return groups, last
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
