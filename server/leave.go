package server

import (
	"context"

	"github.com/umbelhq/umbel"
)

// Leave implements umbel.Poller. It reaches the polls that wait at this server.
func (s *Server) Leave(ctx context.Context, r umbel.LeaveRequest) error {
	if err := s.open(ctx, "leave"); err != nil {
		return err
	}
	if err := umbel.ValidateName("namespace", r.Namespace); err != nil {
		return named("leave", "", err)
	}
	if err := umbel.ValidateName("worker", r.Worker); err != nil {
		return named("leave", "", err)
	}
	for _, p := range s.claimer.of(r.Namespace, r.Worker) {
		s.claimer.leave(p)
	}
	return nil
}

// of lists the polls of a worker.
func (c *claimer) of(namespace, worker string) []*poll {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []*poll
	for _, p := range c.waiting {
		if p.scope.namespace == namespace && p.worker == worker {
			out = append(out, p)
		}
	}
	return out
}
