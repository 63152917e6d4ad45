package enginetest

import (
	"errors"
	"time"

	"github.com/umbelhq/umbel"
)

// leave: the open poll of a worker that goes is answered, those of others are not; to leave without one is no error.
func leave(s *suite) {
	s.ok(s.e.Leave(s.Context(), umbel.LeaveRequest{Namespace: ns, Worker: me}))
	answered := func(worker string) chan error {
		ended := make(chan error, 1)
		go func() {
			r := pollRequest(1)
			r.Worker, r.Wait = worker, umbel.MaxPollWait
			p, err := s.e.Poll(s.Context(), r)
			if err == nil && worker == me && len(p.Rows) > 0 {
				err = errors.New("it has rows")
			}
			ended <- err
		}()
		return ended
	}
	stays, goes := answered("another"), answered(me)
	for left := false; !left; {
		s.ok(s.e.Leave(s.Context(), umbel.LeaveRequest{Namespace: ns, Worker: me}))
		select {
		case err := <-goes:
			s.ok(err)
			left = true
		case <-time.After(50 * time.Millisecond): // the poll had not arrived
		}
	}
	s.start("w", rows(0, 1))
	s.ok(<-stays)
}
