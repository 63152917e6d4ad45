package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/server"
)

// serverFlags are those of dev and server.
type serverFlags struct {
	redis  string
	listen string
	lease  time.Duration
	prefix string
	logs   *logging
}

func (f *serverFlags) flags(cmd *cobra.Command) {
	placeVar(cmd, &f.redis, "redis", "`URL` of a Redis, 6.2 or newer")
	cmd.Flags().Var(&hostPort{&f.listen}, "listen", "`address` to serve on")
	durationVar(cmd, &f.lease, "lease", 0, umbel.MinLease, umbel.MaxLease,
		"how long a worker may be silent before its rows are given to another;\nstored for all servers of the installation (default: what is stored, at first "+umbel.DefaultLease.String()+")")
	cmd.Flags().Var(&name{&f.prefix, "prefix"}, "prefix", "what every key in Redis begins with; installations with different ones share a Redis")
	f.logs = logFlags(cmd, slog.LevelInfo)
}

func newServerFlags() *serverFlags { return &serverFlags{listen: defaultAddr, prefix: "umbel"} }

func (a *app) serverCommand() *cobra.Command {
	f := newServerFlags()
	cmd := &cobra.Command{
		Use:   "server --redis URL",
		Short: "Serve clients and workers on a Redis",
		Long: `Serve clients and workers. All state is in Redis: any number of servers work on
one, and each may end at any time. The URL is one of
  ` + redisForms + `
SIGTERM or Ctrl-C ends the server once the calls under way are answered; polls
and waits go to another server. There is neither TLS nor authentication: listen
where only those can connect who may.`,
		Example: `  umbel server --redis redis://127.0.0.1:6379
  umbel server --redis redis+cluster://10.0.0.1:6379,10.0.0.2:6379 --listen :7890`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := noArgs(cmd, args); err != nil {
				return err
			}
			if f.redis == "" {
				return usagef("which Redis? name it with --redis URL; umbel dev needs none")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			rdb, err := openRedis(f.redis)
			if err != nil {
				return err
			}
			defer func() { _ = rdb.Close() }()
			return a.serve(cmd, rdb, f, nil)
		},
	}
	f.flags(cmd)
	return cmd
}

// serve serves on rdb until a signal comes, or gone is closed because Redis went away for good.
func (a *app) serve(cmd *cobra.Command, rdb redis.UniversalClient, f *serverFlags, gone <-chan struct{}) error {
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", f.listen)
	if err != nil {
		return fmt.Errorf("cannot serve on %s: %w\n  choose another address with --listen", f.listen, errors.Unwrap(err))
	}
	defer func() { _ = l.Close() }()
	if err := ping(ctx, rdb); err != nil {
		return err
	}
	srv, err := server.Open(ctx, rdb, server.Config{Prefix: f.prefix, Lease: f.lease, Logger: f.logs.logger(cmd.ErrOrStderr())})
	if err != nil {
		return err
	}
	defer srv.Close()
	fmt.Fprintf(cmd.OutOrStdout(), "umbel: serving on http://%s\n", l.Addr())
	if gone != nil {
		go func() {
			select {
			case <-gone:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	return srv.Serve(ctx, l)
}

// pingTimeout is how long a Redis may take to answer for the first time.
const pingTimeout = 5 * time.Second

// ping says early, and in few words, that there is no Redis.
func ping(ctx context.Context, rdb redis.UniversalClient) error {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	if err := rdb.Ping(ctx).Err(); err != nil {
		return &hintError{
			fmt.Sprintf("Redis does not answer: %v\n  start one, or correct --redis", err),
			&umbel.Error{Code: umbel.CodeUnavailable, Err: err},
		}
	}
	return nil
}

// hostPort is an address to listen on.
type hostPort struct{ s *string }

func (f *hostPort) Set(s string) error {
	if _, _, err := net.SplitHostPort(s); err != nil {
		return errors.New("must be HOST:PORT, such as 127.0.0.1:7890, or :7890 for all interfaces")
	}
	*f.s = s
	return nil
}

func (f *hostPort) Type() string { return "address" }

func (f *hostPort) String() string {
	if f.s == nil {
		return ""
	}
	return *f.s
}
