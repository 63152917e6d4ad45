package lua

import (
	"context"
	_ "embed"
)

//go:embed sweep.lua
var sweepSource string

var sweep = newScript("sweep", sweepSource)

// Sweep asks a shard for claims whose lease has lapsed.
type Sweep struct {
	Sweep, Claims, Leases string
	Gap                   int64 // ms without a sweep that count as a gap
	Most                  int
}

// Lapsed is a claim whose lease has lapsed. Record is empty if the claim has none.
type Lapsed struct {
	Nonce, Record string
}

// SweepReply names them. Gap is when the shard's last gap ended.
type SweepReply struct {
	Now, Gap int64
	Lapsed   []Lapsed
}

// Call returns the script's call.
func (p Sweep) Call() Call {
	return Call{script: sweep, keys: []string{p.Sweep, p.Claims, p.Leases}, args: []any{p.Gap, p.Most}}
}

// ParseSweep reads the reply of a [Sweep] call.
func ParseSweep(r Reply) (SweepReply, error) {
	if r.Outcome != "ok" {
		return SweepReply{}, r.unexpected()
	}
	v := r.read()
	out := SweepReply{Now: v.int(), Gap: v.int()}
	l := v.list()
	for l.more() {
		out.Lapsed = append(out.Lapsed, Lapsed{Nonce: l.string(), Record: l.string()})
	}
	if l.err != nil {
		return out, l.err
	}
	return out, v.err
}

// Sweep runs the script.
func (s *Scripts) Sweep(ctx context.Context, p Sweep) (SweepReply, error) {
	r, err := s.run(ctx, p.Call())
	if err != nil {
		return SweepReply{}, err
	}
	return ParseSweep(r)
}
