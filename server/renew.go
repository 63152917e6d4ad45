package server

import (
	"context"
	"slices"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/outbox"
)

// Renew implements umbel.Poller.
func (s *Server) Renew(ctx context.Context, r umbel.RenewRequest) (umbel.RenewReply, error) {
	return prompt(ctx, "renew", r, s.renew)
}

func (s *Server) renew(ctx context.Context, r umbel.RenewRequest) (umbel.RenewReply, error) {
	if err := s.open(ctx, "renew"); err != nil {
		return umbel.RenewReply{}, err
	}
	if err := umbel.ValidateName("namespace", r.Namespace); err != nil {
		return umbel.RenewReply{}, named("renew", "", err)
	}
	if err := umbel.ValidateName("worker", r.Worker); err != nil {
		return umbel.RenewReply{}, named("renew", "", err)
	}
	if len(r.Tokens) > umbel.MaxPollRows {
		return umbel.RenewReply{}, named("renew", "", umbel.Limit("renewal", int64(len(r.Tokens)), "tokens of a call", umbel.MaxPollRows))
	}
	reply := umbel.RenewReply{States: make([]umbel.HoldState, len(r.Tokens))}
	holds, err := s.holds(ctx, r, reply.States)
	if err != nil {
		return umbel.RenewReply{}, named("renew", "", err)
	}
	for shard, claims := range holds {
		if len(claims) == 0 {
			continue
		}
		for part := range slices.Chunk(claims, maxRenew) {
			if err := s.rows.Renew(ctx, shard, part); err != nil {
				return umbel.RenewReply{}, named("renew", "", err)
			}
			for _, c := range part {
				for i, state := range c.States {
					reply.States[c.Tags[i]] = holdStates[state]
				}
			}
		}
	}
	if len(r.Tokens) > 0 {
		s.claimer.holds()
	}
	return reply, nil
}

// maxRenew bounds the claims of one script.
const maxRenew = 100

var holdStates = map[byte]umbel.HoldState{'h': umbel.Held, 'l': umbel.HoldLost, 'c': umbel.HoldCancelled}

// holds sorts tokens by shard and claim; the states of those that mean nothing are set at once.
func (s *Server) holds(ctx context.Context, r umbel.RenewRequest, states []umbel.HoldState) ([][]*outbox.Hold, error) {
	out := make([][]*outbox.Hold, s.rows.Space().Shards())
	byNonce := map[string]*outbox.Hold{}
	for i, tok := range r.Tokens {
		t, ok := parseToken(tok, len(out))
		if !ok {
			states[i] = umbel.HoldInvalid
			continue
		}
		h := byNonce[t.nonce]
		if h == nil {
			run, err := s.rows.Run(ctx, t.shard, t.run)
			if err != nil {
				return nil, err
			}
			h = &outbox.Hold{Run: run, Nonce: t.nonce}
			byNonce[t.nonce] = h
			if run != nil && run.Namespace == r.Namespace {
				out[t.shard] = append(out[t.shard], h)
			}
		}
		switch {
		case h.Run == nil:
			states[i] = umbel.HoldLost
		case h.Run.Namespace != r.Namespace || h.Run.ID != t.run:
			states[i] = umbel.HoldInvalid
		default:
			h.Ordinals = append(h.Ordinals, t.ordinal)
			h.Tags = append(h.Tags, i)
		}
	}
	return out, nil
}
