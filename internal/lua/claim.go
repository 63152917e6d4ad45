package lua

import (
	"context"
	_ "embed"
	"fmt"
)

//go:embed claim.lua
var claimSource string

var claim = newScript("claim", claimSource)

// Pair is a run and one of its routes, with the keys that a claim touches.
type Pair struct {
	Run, Rows, Inputs, Resolved string
	RouteKeys
	ID    string // the run's
	Index int    // the route's number in the run
	Most  int    // rows to take at most
}

// Taker is a poll that waits for rows.
type Taker struct {
	Nonce  string // NonceRandom characters; see Nonce
	Want   int
	Worker string
}

// NonceRandom is how many characters of a claim's nonce are drawn; two digits number the pair.
const NonceRandom = 24

// Nonce returns the nonce of the claim that a taker has on the pair at index i (from 0) of the call.
func Nonce(taker string, i int) string { return fmt.Sprintf("%s%02d", taker, i+1) }

// MaxPairs bounds the pairs of a claim: the number takes two digits, and the keys stay few.
const MaxPairs = 16

// Claim hands due rows to polls.
type Claim struct {
	Ready, Backlog, Claims, Leases string
	Lease                          int64 // ms
	MaxChunks                      int
	MaxLarge                       int64
	Pairs                          []Pair
	Takers                         []Taker
}

// Grant is what one poll got of a pair.
type Grant struct {
	Taker int    // index in Claim.Takers
	Spans string // ordinals, 'a-b,c-d'
}

// Record is the stored record of a row that was tried before.
type Record struct {
	Ordinal int64
	Bytes   string
}

// Claimed is what came of a pair.
type Claimed struct {
	Pair    int    // index in Claim.Pairs
	Next    string // the score of what is due next, '' if nothing waits
	Chunks  map[int64]string
	Grants  []Grant
	Retried map[int64]string // records of the rows that have one
	Large   map[int64]string // inputs with a field of their own
}

// ClaimReply says what came of a claim.
type ClaimReply struct {
	Outcome string            // ok, again
	Now     int64             // ms, of Redis's clock
	Routes  map[string]string // the routes that were looked at: the score at which to look again, '' for never
	Pairs   []Claimed
}

// Claim runs the script.
func (s *Scripts) Claim(ctx context.Context, p Claim) (ClaimReply, error) {
	keys := append(make([]string, 0, 4+6*len(p.Pairs)), p.Ready, p.Backlog, p.Claims, p.Leases)
	args := append(make([]any, 0, 5+4*len(p.Pairs)+3*len(p.Takers)), p.Lease, p.MaxChunks, p.MaxLarge, len(p.Pairs), len(p.Takers))
	for _, q := range p.Pairs {
		keys = append(keys, q.Run, q.Rows, q.Due, q.Set, q.Inputs, q.Resolved)
		args = append(args, q.ID, q.Route, q.Index, q.Most)
	}
	for _, t := range p.Takers {
		args = append(args, t.Nonce, t.Want, t.Worker)
	}
	r, err := s.run(ctx, Call{script: claim, keys: keys, args: args})
	if err != nil {
		return ClaimReply{}, err
	}
	switch r.Outcome {
	case "again":
		return ClaimReply{Outcome: r.Outcome}, nil
	case "ok":
	default:
		return ClaimReply{}, r.unexpected()
	}
	v := r.read()
	out := ClaimReply{Outcome: r.Outcome, Now: v.int(), Routes: map[string]string{}}
	routes := v.list()
	for routes.more() {
		name := routes.string()
		out.Routes[name] = routes.string()
	}
	if routes.err != nil {
		return out, routes.err
	}
	for v.more() {
		q := v.list()
		c := Claimed{Pair: int(q.int()) - 1, Next: q.string()}
		c.Chunks = q.list().byNumber()
		grants := q.list()
		for grants.more() {
			c.Grants = append(c.Grants, Grant{Taker: int(grants.int()) - 1, Spans: grants.string()})
		}
		c.Retried = q.list().byNumber()
		c.Large = q.list().byNumber()
		if q.err != nil {
			return out, q.err
		}
		out.Pairs = append(out.Pairs, c)
	}
	return out, v.err
}

func (r *reader) byNumber() map[int64]string {
	if len(r.vals) == 0 {
		return nil
	}
	m := make(map[int64]string, len(r.vals)/2)
	for r.more() {
		n := r.int()
		m[n] = r.string()
	}
	return m
}
