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

// sayDurability logs what an acknowledged start or result survives. It is the first line of a server's log, since
// no other setting matters as much when Redis fails.
func (s *Server) sayDurability(ctx context.Context) {
	said, keeps := "unknown", "what Redis is configured for; this server may not read it"
	if v, err := s.rdb.ConfigGet(ctx, "append*").Result(); err == nil && v["appendonly"] != "" {
		switch {
		case v["appendonly"] != "yes":
			said, keeps = "none", "nothing survives a restart of Redis but its last snapshot: set appendonly yes"
		case v["appendfsync"] == "always":
			said, keeps = "always", "every acknowledged start and result survives a power cut"
		default:
			said, keeps = v["appendfsync"], "the last moments before a crash of Redis's machine may be taken back, and their work runs again"
		}
	}
	s.log.Info("serving", "durability", said, "meaning", keeps, "lease", s.Lease(), "shards", s.rows.Space().Shards())
}
