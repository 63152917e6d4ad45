package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/umbelhq/umbel"
)

func (a *app) showCommand() *cobra.Command {
	var run string
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show how a run stands",
		Example: `  umbel show thumbs
  umbel show thumbs --format json | jq .counts`,
		Args: oneID,
		RunE: func(cmd *cobra.Command, args []string) error {
			admin, done, err := a.connectAdmin(cmd)
			if err != nil {
				return err
			}
			defer done()
			r, err := admin.Show(cmd.Context(), umbel.WorkflowID(args[0]), umbel.RunID(run))
			if err != nil {
				return err
			}
			p := a.printer(cmd, false)
			for _, line := range runLines(r) {
				if a.format == formatJSON {
					break
				}
				p.row([]string{fmt.Sprintf("%-10s %s", line[0], line[1])})
			}
			if a.format == formatJSON {
				err = p.print(newRunJSON(r))
			}
			return p.end(err)
		},
	}
	a.idFlags(cmd, &run)
	return cmd
}

// runLines is a run for people, name by name.
func runLines(r umbel.RunInfo) [][2]string {
	return [][2]string{
		{"workflow", safeText(string(r.WorkflowID))},
		{"run", string(r.RunID)},
		{"status", string(r.Status)},
		{"types", safeText(strings.Join(r.Types, ", "))},
		{"started", clock(r.StartedAt)},
		{"closed", clock(r.ClosedAt)},
		{"scheduled", decimal(r.Counts.Scheduled)},
		{"pending", decimal(r.Counts.Pending)},
		{"claimed", decimal(r.Counts.Claimed)},
		{"completed", decimal(r.Counts.Completed)},
		{"failed", decimal(r.Counts.Failed)},
		{"cancelled", decimal(r.Counts.Cancelled)},
	}
}

// idFlags are those of commands that take a workflow's ID, and print.
func (a *app) idFlags(cmd *cobra.Command, run *string, formats ...string) {
	nameVar(cmd, run, "run", "run ID", "", "`ID` of the run that is meant; without it the workflow's current run")
	a.addrFlag(cmd)
	a.namespaceFlag(cmd)
	a.formatFlag(cmd, formats...)
}
