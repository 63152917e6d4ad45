package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
)

func (a *app) listCommand() *cobra.Command {
	var (
		f      client.ListFilter
		status string
	)
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List runs, the latest first",
		Example: `  umbel list --status running
  umbel list --prefix thumbs- --limit 20 --format json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			admin, done, err := a.connectAdmin(cmd)
			if err != nil {
				return err
			}
			defer done()
			f.Status = umbel.Status(status)
			p := a.printer(cmd, false, "WORKFLOW", "STATUS", "SCHEDULED", "COMPLETED", "FAILED", "CANCELLED", "STARTED", "TYPES")
			return p.end(each(admin.List(cmd.Context(), f), func(r umbel.RunInfo) error {
				return p.print(newRunJSON(r), safeText(string(r.WorkflowID)), string(r.Status), decimal(r.Counts.Scheduled),
					decimal(r.Counts.Completed), decimal(r.Counts.Failed), decimal(r.Counts.Cancelled), clock(r.StartedAt),
					safeText(strings.Join(r.Types, ", ")))
			}))
		},
	}
	choiceVar(cmd, &status, "status", "only runs of this status: ", runStatuses...)
	nameVar(cmd, &f.Activity, "activity", "activity", "", "only runs with rows of this activity, by `name`")
	nameVar(cmd, &f.Prefix, "prefix", "prefix", "", "only workflow IDs that begin with this `text`")
	numberVar(cmd, &f.Limit, "limit", "", 0, 1, 1<<31-1, "at most so many; all unless it is given")
	a.addrFlag(cmd)
	a.namespaceFlag(cmd)
	a.formatFlag(cmd)
	return cmd
}

var runStatuses = []string{
	string(umbel.StatusRunning), string(umbel.StatusCompleted), string(umbel.StatusFailed), string(umbel.StatusCancelled),
}
