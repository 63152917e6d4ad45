package lua

import (
	"context"
	_ "embed"
)

//go:embed renew.lua
var renewSource string

//go:embed deliver.lua
var deliverSource string

var (
	renew   = newScript("renew", renewSource)
	deliver = newScript("deliver", deliverSource)
)

// Hold names the rows of a claim that somebody says they hold.
type Hold struct {
	Run, Rows, Cancelled string // keys
	Nonce                string
	Ordinals             []int64
}

// Renew starts leases of one shard anew.
type Renew struct {
	Claims, Leases string
	Holds          []Hold
}

// Renew runs the script. It returns, for each hold, a letter for each ordinal: h held, l lost, c cancelled.
func (s *Scripts) Renew(ctx context.Context, p Renew) ([]string, error) {
	keys := append(make([]string, 0, 2+3*len(p.Holds)), p.Claims, p.Leases)
	var args []any
	for _, h := range p.Holds {
		keys = append(keys, h.Run, h.Rows, h.Cancelled)
		args = append(args, h.Nonce, len(h.Ordinals))
		for _, o := range h.Ordinals {
			args = append(args, o)
		}
	}
	r, err := s.run(ctx, Call{script: renew, keys: keys, args: args})
	if err != nil {
		return nil, err
	}
	if r.Outcome != "ok" {
		return nil, r.unexpected()
	}
	v := r.read()
	out := make([]string, len(p.Holds))
	for i, h := range p.Holds {
		out[i] = v.string()
		if len(out[i]) != len(h.Ordinals) {
			v.fail("has too few states")
		}
	}
	return out, v.err
}

// Deliver marks claims of one shard as having reached their worker.
func (s *Scripts) Deliver(ctx context.Context, leases string, nonces []string) error {
	args := make([]any, len(nonces))
	for i, n := range nonces {
		args[i] = n
	}
	r, err := s.run(ctx, Call{script: deliver, keys: []string{leases}, args: args})
	if err != nil {
		return err
	}
	if r.Outcome != "ok" {
		return r.unexpected()
	}
	return nil
}
