package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/server"
	"github.com/umbelhq/umbel/worker"
)

// privateLease is the lease of a server that serves one process: after a kill -9 the rows that were in flight
// come back soon.
const privateLease = 3 * time.Second

// runFlags are those of run.
type runFlags struct {
	spec  client.StartSpec
	id    string
	data  string
	keep  bool
	slots int
	in    itemFormat
	c     command
	logs  *logging
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run -- CMD [ARG…] < items",
		Short: "Run a command for each line of input: durable xargs",
		Long: `Run CMD, without a shell, for each line of standard input, and write what it
prints, byte for byte, nothing added: start, worker and results in one command.
How CMD gets its input, what its exit code means and what it finds in its
environment is as with umbel worker.

With --data DIR the run survives a crash: run again with the same --workflow-id
and the same items, it goes on where it was, and prints all results. Rows that
are done are not run again, by whatever command. DIR is kept by the redis-server
on PATH. Without --data all is kept in memory. With --addr or $UMBEL_ADDR the run
is one of a server's; its rows wait on a task queue of their own, named after the
workflow, where no worker takes them but umbel run with that workflow ID.

Rows that fail are named on standard error. Exits with 0 exactly if all rows
completed.`,
		Example: `  umbel run -k -- sha256sum {} < list
  umbel run --data ./sums --workflow-id sums -j 8 -k -- sha256sum {} < list`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := program(cmd, args); err != nil {
				return err
			}
			return f.check(a)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.c.find(cmd, args, a.signals.second()); err != nil {
				return err
			}
			if a.shared(&f) {
				conn, err := a.connect(cmd.Context())
				if isHint(err) {
					return &hintError{err.Error() + "\n  or run without a server: without --addr and $" + addrVar, err}
				}
				if err != nil {
					return err
				}
				defer func() { _ = conn.Close() }()
				return a.xargs(cmd, conn, &f, nil)
			}
			return a.private(cmd, &f)
		},
	}
	numberVar(cmd, &f.slots, "jobs", "j", runtime.GOMAXPROCS(0), 1, umbel.MaxConcurrency, "how many commands run at once; the number of CPUs unless it is given")
	cmd.Flags().Lookup("jobs").DefValue = "" // it is another on each machine
	cmd.Flags().BoolVarP(&f.keep, "keep-order", "k", false, "write results in the order of the items, in place of as they finish")
	placeVar(cmd, &f.data, "data", "keep the run in this `directory`, with the redis-server on PATH")
	nameVar(cmd, &f.id, "workflow-id", "workflow ID", "", "`ID` under which the run goes on when it is run again")
	numberVar(cmd, &f.spec.MaxAttempts, "max-attempts", "", umbel.DefaultRetry.MaxAttempts, 1, umbel.MaxAttempts, "how often a row is tried in all")
	durationVar(cmd, &f.spec.Timeout, "timeout", 0, 0, umbel.MaxDelay, "bound on one attempt; none unless it is given")
	f.c.flags(cmd)
	f.in.flags(cmd)
	a.addrFlag(cmd)
	a.namespaceFlag(cmd)
	f.logs = logFlags(cmd, slog.LevelWarn)
	return cmd
}

// shared reports whether a server is named, and no directory.
func (a *app) shared(f *runFlags) bool {
	_, given := a.addresses()
	return given && f.data == ""
}

func (f *runFlags) check(a *app) error {
	switch {
	case a.addr != "" && f.data != "":
		return usagef("give either --addr or --data, not both")
	case f.id != "" && f.data == "" && !a.shared(f):
		return usagef("--workflow-id %q: nothing is kept in memory that a later run could go on with; add --data DIR, or --addr for a server", f.id)
	}
	return nil
}

// private runs on a server of its own, which listens nowhere.
func (a *app) private(cmd *cobra.Command, f *runFlags) error {
	own, err := openOwn(cmd.Context(), f.data)
	if err != nil {
		return err
	}
	defer own.close()
	srv, err := server.Open(cmd.Context(), own.client, server.Config{Lease: privateLease, Logger: f.logs.logger(cmd.ErrOrStderr())})
	if err != nil {
		return err
	}
	defer srv.Close()
	err = a.xargs(cmd, srv, f, own.gone)
	if gone := own.failed(cmd.Context()); gone != nil { // the rest follows from it
		return gone
	}
	return err
}

var errRedisGone = errors.New("redis-server has ended")

// engine is what both of xargs' sides need.
type engine interface {
	client.Engine
	umbel.Poller
}

// xargs starts the run, works on it, and writes its results. It gives up when gone is closed.
func (a *app) xargs(cmd *cobra.Command, e engine, f *runFlags, gone <-chan struct{}) error {
	log := f.logs.logger(cmd.ErrOrStderr())
	admin, err := a.admin(e, log)
	if err != nil {
		return err
	}
	f.spec.WorkflowID = umbel.WorkflowID(cmp.Or(f.id, string(umbel.NewRunID())))
	f.spec.TaskQueue = ownQueue(f.spec.WorkflowID)
	w, err := newWorker(e, worker.Config{
		Namespace: a.namespace, TaskQueue: f.spec.TaskQueue, Concurrency: f.slots, Grace: f.c.grace, Logger: log,
		Interceptors: []umbel.Interceptor{f.sayTriedAgain()},
	}, client.DefaultActivity, &f.c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(cmd.Context())
	defer cancel(nil)
	go func() {
		select {
		case <-gone:
			cancel(errRedisGone)
		case <-ctx.Done():
		}
	}()
	if a.orphans(f) { // the write that fails says that nobody reads; the signal would leave no time to cancel
		broken := make(chan os.Signal, 1)
		signal.Notify(broken, syscall.SIGPIPE)
		defer signal.Stop(broken)
	}
	run, err := admin.Start(ctx, f.spec, f.in.read(cmd))
	if err != nil {
		return detached(cmd.Context(), exists(err, f.spec.OnExisting, f.data), "interrupted while starting")
	}

	worked := make(chan error, 1)
	go func() {
		err := w.Run(context.WithoutCancel(ctx))
		cancel(err) // nobody would finish what the results wait for
		worked <- err
	}()
	failed, err := a.writeInTime(ctx, cmd, admin, run, f)
	if err != nil {
		err = a.leave(cmd.Context(), admin, f, err)
	}
	_ = w.Stop(context.WithoutCancel(ctx)) // Run returns what there is to say
	if err = errors.Join(err, <-worked); err != nil {
		return err
	}
	if failed > 0 {
		return errors.New(many(failed, "row") + " without a result")
	}
	return nil
}

// sayTriedAgain says of the first row that fails that it is tried again, since the wait for that may be long.
func (f *runFlags) sayTriedAgain() umbel.Interceptor {
	var once sync.Once
	return func(next umbel.Handler) umbel.Handler {
		return func(ctx context.Context, in umbel.Payload) (umbel.Payload, error) {
			out, err := next(ctx, in)
			info := worker.Info(ctx)
			if err == nil || ctx.Err() != nil || info.Attempt >= f.spec.MaxAttempts {
				return out, err
			}
			if failure := umbel.NewFailure(err, info.Attempt); !failure.NonRetryable {
				once.Do(func() {
					_, _ = fmt.Fprintf(f.c.stderr, "umbel: ordinal %d failed (%s) and is tried again, as all that fail are: %d times in all, see --max-attempts\n",
						info.Ordinal, safeText(failure.Type), f.spec.MaxAttempts) // a hint
				})
			}
			return out, err
		}
	}
}

// lastWrite is how long a write may take once the context has ended.
const lastWrite = time.Second

// writeInTime is writeResults that ends with ctx even if whoever reads standard output does not read on. The write is
// left behind then: the process is about to end.
func (a *app) writeInTime(
	ctx context.Context, cmd *cobra.Command, admin *client.Admin, run *client.Run[umbel.Payload], f *runFlags,
) (failed int64, err error) {
	type ending struct {
		failed int64
		err    error
	}
	ended := make(chan ending, 1)
	go func() {
		failed, err := a.writeResults(ctx, cmd, admin, run, f)
		ended <- ending{failed, err}
	}()
	var late <-chan time.Time
	over := ctx.Done()
	for {
		select {
		case e := <-ended:
			return e.failed, e.err
		case <-over:
			over, late = nil, time.After(lastWrite)
		case <-late:
			return 0, fmt.Errorf("standard output is not read on: %w", context.Cause(ctx))
		}
	}
}

// writeResults writes results as they come, and returns how many rows have none.
func (a *app) writeResults(
	ctx context.Context, cmd *cobra.Command, admin *client.Admin, run *client.Run[umbel.Payload], f *runFlags,
) (failed int64, err error) {
	q := client.ResultsQuery{Run: run.ID(), Ordered: f.keep, Follow: true}
	out := cmd.OutOrStdout()
	err = each(admin.Results(ctx, run.WorkflowID(), q), func(r umbel.Result[umbel.Payload]) error {
		if !hasValue(r) {
			failed++
			sayFailed(cmd, r)
			return nil
		}
		_, err := out.Write(r.Value.Data)
		return err
	})
	return failed, err
}

// orphans reports whether nobody can go on with the run once this process has ended, though a server has it.
func (a *app) orphans(f *runFlags) bool { return a.shared(f) && f.id == "" }

// leave says what becomes of a run whose results were not all written. One that nobody can go on with is cancelled.
func (a *app) leave(ctx context.Context, admin *client.Admin, f *runFlags, err error) error {
	interrupted := ctx.Err() != nil
	if !a.orphans(f) {
		switch {
		case !interrupted:
			return err
		case f.id != "":
			return &hintError{"interrupted; the same command goes on where it was", err}
		default:
			return &hintError{"interrupted; a run with --data and --workflow-id can go on later", err}
		}
	}
	why := "interrupted"
	if !interrupted {
		why = message(err)
	}
	const patience = 5 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	_, cancelErr := admin.Cancel(ctx, f.spec.WorkflowID, "", "umbel run has ended early: "+why)
	if cancelErr != nil {
		return &hintError{fmt.Sprintf("%s; what is left was not cancelled (%v): umbel cancel %s", why, cancelErr, f.spec.WorkflowID), err}
	}
	return &hintError{why + "; what was left is cancelled. A run with --workflow-id can go on later", err}
}

// ownQueue is the task queue of a workflow's run: only a worker that knows the workflow asks for its rows, since
// others of the same activity run other commands. It is the same whenever the workflow is run again.
func ownQueue(id umbel.WorkflowID) string {
	sum := sha256.Sum256([]byte(id))
	return "run-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}
