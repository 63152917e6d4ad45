package server

import (
	"errors"
	"log/slog"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/outbox"
)

// Config configures a [Server]. The zero value works.
type Config struct {
	// Prefix begins every key in Redis. Default "umbel". Installations with different prefixes share a Redis
	// without meeting.
	Prefix string
	// Shards is the number of shards that a new installation gets: a power of two up to 256. Default 16. It is
	// stored; another number at a later start is refused.
	Shards int
	// Lease is how long a worker may be silent before its rows are given to another: umbel.MinLease to
	// umbel.MaxLease, whole milliseconds. It is stored for the installation: 0 takes what is stored, at first
	// umbel.DefaultLease; any other value replaces it, and servers that run adopt it with a warning.
	Lease time.Duration
	// StagingTTL is how long staged inputs wait for the next call before they expire. Default 10 minutes.
	StagingTTL time.Duration
	// Logger receives what the server has to say. Nil: slog.Default().
	Logger *slog.Logger
}

// validate returns all that is wrong with c.
func (c Config) validate() error {
	var errs []error
	if c.Lease != 0 {
		errs = append(errs, umbel.ValidateDuration("lease", c.Lease, umbel.MinLease, umbel.MaxLease))
	}
	if c.StagingTTL != 0 {
		errs = append(errs, umbel.ValidateDuration("staging TTL", c.StagingTTL, time.Second, umbel.MaxLease))
	}
	return errors.Join(errs...)
}

func (c Config) logger() *slog.Logger {
	if c.Logger == nil {
		return slog.Default()
	}
	return c.Logger
}

func (c Config) options() outbox.Options {
	return outbox.Options{Prefix: c.Prefix, Shards: c.Shards}
}
