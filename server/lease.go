package server

import (
	"context"

	"github.com/umbelhq/umbel"
)

// The lease's length is the installation's: servers that disagreed would let each other's claims lapse too early
// or too late.

// agreeOnLease takes the stored lease, or stores the one that is configured.
func (s *Server) agreeOnLease(ctx context.Context) error {
	stored, err := s.rows.Lease(ctx)
	if err != nil {
		return err
	}
	switch {
	case s.cfg.Lease == 0 && stored == 0:
		s.lease.Store(int64(umbel.DefaultLease))
		return nil
	case s.cfg.Lease == 0 || s.cfg.Lease == stored:
		s.lease.Store(int64(stored))
		return nil
	case stored != 0:
		s.log.Warn("lease replaced for the whole installation", "lease", s.cfg.Lease, "before", stored)
	}
	s.lease.Store(int64(s.cfg.Lease))
	return s.rows.SetLease(ctx, s.cfg.Lease)
}

// adoptLease follows what another server has stored since.
func (s *Server) adoptLease(ctx context.Context) error {
	stored, err := s.rows.Lease(ctx)
	if err != nil || stored == 0 || stored == s.Lease() {
		return err
	}
	s.log.Warn("another server has replaced the lease; it is adopted", "lease", stored, "before", s.Lease())
	s.lease.Store(int64(stored))
	return nil
}
