package enginetest

import "github.com/umbelhq/umbel"

// renew: each token has its state, in order, however often it is asked.
func renew(s *suite) {
	s.start("w", rows(0, 4), once())
	held := s.claim(4)
	s.finish(held[1])
	_, err := s.e.Cancel(s.Context(), umbel.CancelRequest{Namespace: ns, WorkflowID: "w", Ordinals: []int64{2}})
	s.ok(err)
	s.report([]umbel.ReportItem{released(held[3])}, umbel.Released)
	tokens := []umbel.Token{held[0].Token, held[1].Token, held[2].Token, held[3].Token, "no token", held[0].Token}
	want := []umbel.HoldState{umbel.Held, umbel.HoldLost, umbel.HoldCancelled, umbel.HoldLost, umbel.HoldInvalid, umbel.Held}
	for range 2 {
		r, err := s.e.Renew(s.Context(), umbel.RenewRequest{Namespace: ns, Worker: me, Tokens: tokens})
		s.ok(err)
		s.equal("states", r.States, want)
	}
	r, err := s.e.Renew(s.Context(), umbel.RenewRequest{Namespace: "other", Worker: me, Tokens: tokens[:1]})
	s.ok(err)
	s.equal("from another namespace", r.States, []umbel.HoldState{umbel.HoldInvalid})
	r, err = s.e.Renew(s.Context(), umbel.RenewRequest{Namespace: ns, Worker: me})
	s.ok(err)
	s.equal("of nothing", r.States, []umbel.HoldState(nil))
}
