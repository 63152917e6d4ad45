package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/worker"
)

// defaultGrace is what docker and others give a process, too, and leaves a worker time to report.
const defaultGrace = 10 * time.Second

func (a *app) workerCommand() *cobra.Command {
	var (
		activity string
		cfg      worker.Config
		c        command
		logs     *logging
	)
	cmd := &cobra.Command{
		Use:   "worker -- CMD [ARG…]",
		Short: "Run a command for each row",
		Long: `A worker in any language: for each row it runs CMD, without a shell, with the
input on standard input. Where an ARG holds {} the input is put there, too; it is
refused if it holds a NUL byte or has more than 128 KiB.

What CMD writes to standard output, byte for byte, is the result: at most 2 MiB.
Exit code 0 is success, those of --no-retry-exit fail the row for good, any other
is a failed attempt, with the end of standard error as its message; rows are
tried again as their start says. Standard error is passed on, each line behind
the row's ordinal.

CMD runs in a process group of its own. When its row is cancelled, its time is
over or the worker stops, the group gets SIGTERM, and SIGKILL after --grace; a
command that was told to end has no result, whatever it exits with. Its
environment has UMBEL_WORKFLOW_ID, UMBEL_RUN_ID, UMBEL_ORDINAL, UMBEL_ATTEMPT,
UMBEL_DISPATCH_KEY and UMBEL_IDEMPOTENCY_KEY.

SIGTERM or Ctrl-C stops the worker: it takes no more rows and lets commands run
on for --grace. A second one ends them at once. Rows that were not finished go to
other workers, at no cost to their attempts.`,
		Example: `  umbel worker --concurrency 8 -- sha256sum {}
  umbel worker --activity invoice --no-retry-exit 65 -- python3 invoice.py`,
		Args: program,
		RunE: func(cmd *cobra.Command, args []string) error {
			log := logs.logger(cmd.ErrOrStderr())
			if err := c.find(cmd, args, a.signals.second()); err != nil {
				return err
			}
			conn, err := a.dial()
			if err != nil {
				return err
			}
			defer func() { _ = conn.Close() }()
			if err := a.reach(cmd.Context(), conn); err != nil && cmd.Context().Err() == nil {
				fmt.Fprintf(cmd.ErrOrStderr(), "umbel: %s\n  waiting for it\n", message(err))
			}
			cfg.Namespace, cfg.Grace, cfg.Logger = a.namespace, c.grace, log
			w, err := newWorker(conn, cfg, activity, &c)
			if err != nil {
				return err
			}
			return a.serveRows(cmd.Context(), w, c.grace, c.stderr)
		},
	}
	nameVar(cmd, &activity, "activity", "activity", client.DefaultActivity, "`name` of the activity that CMD is")
	nameVar(cmd, &cfg.TaskQueue, "task-queue", "task queue", umbel.DefaultTaskQueue, "`name` of the pool that this worker belongs to")
	nameVar(cmd, &cfg.Node, "node", "node", "", "take rows that are pinned to this node, too, by `name`")
	numberVar(cmd, &cfg.Concurrency, "concurrency", "c", worker.DefaultConcurrency, 1, umbel.MaxConcurrency, "how many commands run at once")
	durationVar(cmd, &c.timeout, "timeout", 0, 0, umbel.MaxDelay, "bound on each run of CMD, beside that of the start; none unless it is given")
	c.flags(cmd)
	a.addrFlag(cmd)
	a.namespaceFlag(cmd)
	logs = logFlags(cmd, slog.LevelInfo)
	return cmd
}

// flags are those of everything that runs a command.
func (c *command) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&c.trim, "trim", false, "drop one newline at the end of each result")
	cmd.Flags().Var(&numbers[int]{&c.noRetry, 1, 255}, "no-retry-exit", "exit codes that fail a row for good")
	durationVar(cmd, &c.grace, "grace", defaultGrace, time.Millisecond, umbel.MaxDelay, "how long a command may take from SIGTERM to SIGKILL")
}

// find looks for the program, before a row is taken that could not be run.
func (c *command) find(cmd *cobra.Command, args []string, hurry <-chan struct{}) error {
	path, err := exec.LookPath(args[0])
	if err != nil {
		if cause, ok := errors.AsType[*exec.Error](err); ok {
			err = cause.Err
		}
		return usagef("command %q cannot be run: %w", args[0], err)
	}
	c.path, c.args, c.hurry, c.stderr = path, args, hurry, &lineWriter{w: cmd.ErrOrStderr()}
	return nil
}

func newWorker(e worker.Engine, cfg worker.Config, activity string, c *command) (*worker.Worker, error) {
	w, err := worker.New(e, cfg)
	if err != nil {
		return nil, err
	}
	return w, worker.TryHandleFunc(w, activity, c.handle)
}

// serveRows runs w until a signal has stopped it. The second signal stops it at once.
func (a *app) serveRows(ctx context.Context, w *worker.Worker, grace time.Duration, stderr io.Writer) error {
	ended := make(chan struct{})
	defer close(ended)
	context.AfterFunc(ctx, func() {
		fmt.Fprintf(stderr, "umbel: stopping; commands may run on for %v, or until a second signal\n", grace)
	})
	go func() {
		select {
		case <-a.signals.again:
			_ = w.Stop(context.WithoutCancel(ctx)) // Run returns what there is to say
		case <-ended:
		}
	}()
	return w.Run(ctx)
}
