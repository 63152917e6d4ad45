package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
)

func (a *app) watchCommand() *cobra.Command {
	var run string
	cmd := &cobra.Command{
		Use:   "watch ID",
		Short: "Watch a run until it is closed",
		Long: `Watch a run until it is closed: a progress bar on a terminal, else a line
whenever it has changed. Exits with 0 exactly if the run ends completed.
Ctrl-C stops watching; the run goes on.`,
		Args: oneID,
		RunE: func(cmd *cobra.Command, args []string) error {
			admin, done, err := a.connectAdmin(cmd)
			if err != nil {
				return err
			}
			defer done()
			id := umbel.WorkflowID(args[0])
			p := a.printer(cmd, true, "STATUS", "SCHEDULED", "PENDING", "CLAIMED", "COMPLETED", "FAILED", "CANCELLED")
			bar := &progress{}
			if a.format == formatTable && isTerminal(cmd.OutOrStdout()) {
				bar = newProgress(cmd.ErrOrStderr())
			}
			last, err := follow(cmd.Context(), admin, id, umbel.RunID(run), bar, func(r umbel.RunInfo) error {
				if bar.visible() && r.Status == umbel.StatusRunning {
					return nil
				}
				bar.clear()
				c := r.Counts
				return p.print(newRunJSON(r), string(r.Status), decimal(c.Scheduled), decimal(c.Pending),
					decimal(c.Claimed), decimal(c.Completed), decimal(c.Failed), decimal(c.Cancelled))
			})
			if err != nil {
				return p.end(err)
			}
			return p.end(outcome(last))
		},
	}
	a.idFlags(cmd, &run)
	return cmd
}

// follow watches a run until it is closed. Ctrl-C ends that, and is told how to look again.
func follow(
	ctx context.Context, admin *client.Admin, id umbel.WorkflowID, run umbel.RunID, bar *progress, see func(umbel.RunInfo) error,
) (last umbel.RunInfo, err error) {
	defer bar.clear()
	err = each(admin.Watch(ctx, id, run), func(r umbel.RunInfo) error {
		last = r
		bar.show(r.Counts)
		return see(r)
	})
	bar.clear()
	return last, detached(ctx, err, "detached; the work goes on. Look again with: umbel watch %s", quoteArg(string(id)))
}

// outcome is nil exactly if a closed run is completed.
func outcome(r umbel.RunInfo) error {
	if r.Status == umbel.StatusCompleted {
		return nil
	}
	id := quoteArg(string(r.WorkflowID))
	look := "results " + id + " --status failed"
	if r.Counts.Failed == 0 {
		look = "history " + id
	}
	return fmt.Errorf("workflow %s is %s: %d of %d completed, %d failed, %d cancelled\n  see why with: umbel %s",
		id, r.Status, r.Counts.Completed, r.Counts.Scheduled, r.Counts.Failed, r.Counts.Cancelled, look)
}
