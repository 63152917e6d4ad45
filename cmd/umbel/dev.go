package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/umbelhq/umbel/internal/localredis"
	"github.com/umbelhq/umbel/internal/memredis"
)

func (a *app) devCommand() *cobra.Command {
	f := newServerFlags()
	var data string
	cmd := &cobra.Command{
		Use:   "dev [--data DIR | --redis URL]",
		Short: "Serve with a Redis of its own, to try things on",
		Long: `A server and an embedded in-memory Redis in one process: nothing to install, and
nothing is left when it ends. With --data the redis-server on PATH keeps all in
DIR and syncs it with every command, so that it survives kill -9 and a power cut.
With --redis it works on a Redis that runs elsewhere, as umbel server does.`,
		Example: `  umbel dev
  umbel dev --data ./umbel-data --listen 127.0.0.1:8000`,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.redis != "" && data != "" {
				return usagef("give either --redis or --data, not both")
			}
			return noArgs(cmd, args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.redis != "" {
				rdb, err := openRedis(f.redis)
				if err != nil {
					return err
				}
				defer func() { _ = rdb.Close() }()
				return a.serve(cmd, rdb, f, nil)
			}
			own, err := openOwn(cmd.Context(), data)
			if err != nil {
				return err
			}
			defer own.close()
			if data == "" {
				fmt.Fprintln(cmd.ErrOrStderr(), "umbel: all is kept in memory and ends with this process; --data DIR keeps it")
			}
			err = a.serve(cmd, own.client, f, own.gone)
			return errors.Join(err, own.failed(cmd.Context()))
		},
	}
	f.flags(cmd)
	placeVar(cmd, &data, "data", "keep all in this `directory`, with the redis-server on PATH")
	return cmd
}

// ownRedis is a Redis that ends with this process: in memory, or with its data in a directory.
type ownRedis struct {
	client redis.UniversalClient
	close  func()
	gone   <-chan struct{} // closed when it has ended by itself, nil if it cannot
	err    func() error    // why
}

func openOwn(ctx context.Context, dir string) (*ownRedis, error) {
	if dir == "" {
		mem := memredis.Open()
		return &ownRedis{client: mem.Client(), close: mem.Close}, nil
	}
	local, err := localredis.Open(ctx, dir)
	if err != nil {
		return nil, err
	}
	return &ownRedis{client: local.Client(), close: local.Close, gone: local.Done(), err: local.Err}, nil
}

// failed is why the Redis ended by itself, nil if it did not.
func (o *ownRedis) failed(ctx context.Context) error {
	select {
	case <-ctx.Done(): // this process is what ends
		return nil
	default:
	}
	select {
	case <-o.gone:
		return o.err()
	default:
		return nil
	}
}
