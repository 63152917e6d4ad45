package server

import (
	"context"
	"strings"
)

// sayDurability logs what an acknowledged start or result survives. It is the first line of a server's log, since
// no other setting matters as much when Redis fails.
func (s *Server) sayDurability(ctx context.Context) {
	said, keeps := s.durability(ctx)
	if v, err := s.rdb.ConfigGet(ctx, "maxmemory*").Result(); err == nil && v["maxmemory"] != "0" && v["maxmemory"] != "" &&
		v["maxmemory-policy"] != "noeviction" {
		defer s.log.Warn("this Redis evicts keys when it is full, and work would be lost: set maxmemory-policy noeviction",
			"policy", v["maxmemory-policy"])
	}
	s.log.Info("serving", "durability", said, "meaning", keeps, "lease", s.Lease(), "shards", s.rows.Space().Shards())
}

// durability is what Redis says of its settings: in CONFIG, or where that is forbidden, as it is on managed
// offerings, in INFO.
func (s *Server) durability(ctx context.Context) (said, keeps string) {
	const (
		nothing = "nothing survives a restart of Redis but its last snapshot: set appendonly yes"
		moments = "the last moments before a crash of Redis's machine may be taken back, and their work runs again"
	)
	if v, err := s.rdb.ConfigGet(ctx, "append*").Result(); err == nil && v["appendonly"] != "" {
		switch {
		case v["appendonly"] != "yes":
			return "none", nothing
		case v["appendfsync"] == "always":
			return "always", "every acknowledged start and result survives a power cut"
		default:
			return v["appendfsync"], moments
		}
	}
	info, err := s.rdb.Info(ctx, "persistence").Result()
	switch {
	case err != nil || !strings.Contains(info, "aof_enabled:"):
		return "none", "this Redis says nothing of persistence: count on nothing to survive its restart"
	case strings.Contains(info, "aof_enabled:0"):
		return "none", nothing
	}
	return "append-only file", "appendfsync cannot be read here; with everysec, " + moments
}
