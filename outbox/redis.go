package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/keys"
	"github.com/umbelhq/umbel/internal/lua"
)

// Format is the version of what this binary writes to Redis. It refuses a newer one, and raises an older one to its own.
const Format = 2

// DefaultShards is the number of shards that an installation gets at its first start.
const DefaultShards = 16

// Options configure a [Redis] store. The zero value works.
type Options struct {
	// Prefix begins every key. Default "umbel".
	Prefix string
	// Shards is the number of shards if this is the first start: a power of two up to 256. Default 16. Later
	// starts take the number that is stored; another one is refused.
	Shards int
	// Lease is how long a claim through [Store] lasts. Default umbel.DefaultLease.
	Lease time.Duration
}

// Redis is the outbox on Redis, or on anything that speaks its protocol: a single server, Sentinel, Cluster.
// It is safe for concurrent use and has no goroutines of its own.
type Redis struct {
	rdb     redis.UniversalClient
	scripts *lua.Scripts
	space   keys.Space
	lease   time.Duration
	runs    cache
	views   viewCache
}

var _ Store = (*Redis)(nil)

// NewRedis opens the outbox of an installation, and founds it if there is none. It refuses a format newer
// than its own, and a number of shards other than the one stored.
func NewRedis(ctx context.Context, rdb redis.UniversalClient, opts Options) (*Redis, error) {
	prefix := cmp.Or(opts.Prefix, keys.DefaultPrefix)
	if err := umbel.ValidateName("prefix", prefix); err != nil {
		return nil, err
	}
	for _, c := range prefix {
		if c == '{' || c == '}' {
			return nil, umbel.Invalid("prefix", prefix, "must not contain braces: they mark the shard's hash tag")
		}
	}
	shards := cmp.Or(opts.Shards, DefaultShards)
	if shards < 1 || shards > keys.MaxShards || shards&(shards-1) != 0 {
		return nil, umbel.Invalid("shards", strconv.Itoa(shards), "must be a power of two from 1 to 256")
	}
	lease := cmp.Or(opts.Lease, umbel.DefaultLease)
	if err := umbel.ValidateDuration("lease", lease, umbel.MinLease, umbel.MaxLease); err != nil {
		return nil, err
	}
	o := &Redis{rdb: rdb, scripts: lua.New(rdb), lease: lease, runs: cache{runs: map[umbel.RunID]*Run{}}}
	o.views.views = map[umbel.StagingID]lua.View{}
	stored, err := o.found(ctx, prefix, shards)
	if err != nil {
		return nil, err
	}
	if opts.Shards != 0 && stored != opts.Shards {
		return nil, umbel.Invalid("shards", strconv.Itoa(opts.Shards), fmt.Sprintf(
			"is not the number that this installation was founded with, %d; leave it out, or choose another prefix", stored))
	}
	o.space = keys.New(prefix, stored)
	return o, nil
}

// found writes format and shards if they are not there, and returns the number of shards that is.
func (o *Redis) found(ctx context.Context, prefix string, shards int) (int, error) {
	meta := keys.Meta(prefix)
	var vals []any
	read := func() (err error) {
		vals, err = o.rdb.HMGet(ctx, meta, "format", "shards").Result()
		return err
	}
	err := o.scripts.Retry(ctx, read)
	if err == nil && (vals[0] == nil || vals[1] == nil) { // not written otherwise: a full Redis may hold an installation
		err = o.scripts.Retry(ctx, func() error {
			_, err := o.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
				p.HSetNX(ctx, meta, "format", Format)
				p.HSetNX(ctx, meta, "shards", shards)
				return nil
			})
			if err != nil {
				return err
			}
			return read()
		})
	}
	if err != nil {
		return 0, o.fail("open", err)
	}
	text := func(i int) string { s, _ := vals[i].(string); return s }
	format, err := strconv.Atoi(text(0))
	if err != nil {
		return 0, o.broken("open", "", "", fmt.Errorf("format %q in %s is no number", text(0), meta))
	}
	if format > Format {
		return 0, &umbel.Error{
			Code: umbel.CodeUnsupported, Op: "open", Field: "format", Value: text(0), NotApplied: true,
			Reason: fmt.Sprintf("in Redis is newer than this version's %d: upgrade this process", Format),
		}
	}
	n, err := strconv.Atoi(text(1))
	if err != nil || n < 1 || n > keys.MaxShards {
		return 0, o.broken("open", "", "", fmt.Errorf("number of shards %q in %s is out of range", text(1), meta))
	}
	if format < Format {
		return n, o.raise(ctx, meta)
	}
	return n, nil
}

// raise marks an older installation as written by this version, so that older ones do not open it any more. A full Redis
// refuses that; it must drain all the same, and the next start tries again.
func (o *Redis) raise(ctx context.Context, meta string) error {
	err := o.scripts.Retry(ctx, func() error { return o.rdb.HSet(ctx, meta, "format", Format).Err() })
	if lua.Full(err) {
		return nil
	}
	return o.fail("open", err)
}

// Scripts returns the scripts. They, Space and Shard are for package history and the server, which change rows and
// log in one step.
func (o *Redis) Scripts() *lua.Scripts { return o.scripts }

// Space returns the names of the installation's keys.
func (o *Redis) Space() keys.Space { return o.space }

// Shard returns the shard of a workflow.
func (o *Redis) Shard(namespace string, id umbel.WorkflowID) keys.Shard {
	return o.space.Shard(o.space.ShardOf(namespace, string(id)))
}

// Now reads the clock that decides what is due.
func (o *Redis) Now(ctx context.Context) (time.Time, error) {
	var t time.Time
	err := o.scripts.Retry(ctx, func() (err error) {
		t, err = o.rdb.Time(ctx).Result()
		return err
	})
	if err != nil {
		return t, o.fail("read clock", err)
	}
	return t.UTC(), nil
}

// Current returns the workflow's current run, or "" if there is no such workflow.
func (o *Redis) Current(ctx context.Context, namespace string, id umbel.WorkflowID) (umbel.RunID, error) {
	var s string
	err := o.scripts.Retry(ctx, func() (err error) {
		s, err = o.rdb.HGet(ctx, o.Shard(namespace, id).Workflow(namespace, string(id)).Record, "run").Result()
		return err
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", o.fail("read workflow", err)
	}
	return umbel.RunID(s), nil
}

// fail turns what Redis said into the API's error.
func (o *Redis) fail(op string, err error) error { return Failure(op, err) }

// Failure turns an error of Redis into the API's error; what is one already stays as it is.
func Failure(op string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*umbel.Error](err); ok {
		return e
	}
	switch {
	case lua.Full(err):
		return &umbel.Error{
			Code: umbel.CodeOverloaded, Op: op, NotApplied: true, Err: err,
			Reason: "Redis is at its maxmemory and takes no more rows; what runs goes on. Raise maxmemory, or wait for runs to end",
		}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &umbel.Error{Code: umbel.CodeUnavailable, Op: op, Err: err, Reason: "the call ended before Redis had answered"}
	case lua.Away(err):
		return &umbel.Error{Code: umbel.CodeUnavailable, Op: op, Err: err, Reason: "Redis did not answer"}
	}
	return &umbel.Error{Code: umbel.CodeInternal, Op: op, Err: err}
}

// broken is the error for data that no version wrote.
func (o *Redis) broken(op string, id umbel.WorkflowID, run umbel.RunID, err error) error {
	return &umbel.Error{Code: umbel.CodeInternal, Op: op, WorkflowID: id, RunID: run, Err: err}
}
