package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
)

// onExisting are the words of --on-existing.
var onExisting = map[string]client.OnExisting{
	"same": client.SameInputs, "attach": client.Existing, "reject": client.Reject,
}

// exists says of a workflow that has a run already what to do. data is the directory that the run is in, if it is in one.
func exists(err error, asked client.OnExisting, data string) error {
	e, ok := errors.AsType[*umbel.Error](err)
	if !ok || e.Code != umbel.CodeAlreadyExists {
		return err
	}
	id := quoteArg(string(e.WorkflowID))
	if asked == client.Reject {
		return &hintError{fmt.Sprintf("workflow %s exists already (run %s)", id, e.RunID), err}
	}
	look := "umbel show " + id
	if data != "" {
		look = "umbel dev --data " + quoteArg(data) + ", then " + look
	}
	return &hintError{fmt.Sprintf("workflow %s exists already (run %s), with other items or options\n  choose another --workflow-id, or look at that run with: %s",
		id, e.RunID, look), err}
}

func (a *app) startCommand() *cobra.Command {
	var (
		spec     client.StartSpec
		id       string
		existing = "same"
		in       itemFormat
		wait     bool
	)
	cmd := &cobra.Command{
		Use:   "start < items",
		Short: "Start a fan-out of the items on standard input",
		Long: `Start a fan-out with one row for each line of standard input, and print its
workflow and run ID. Lines travel without their newline. Workers run the rows:
umbel worker, or programs with the SDK.

With --workflow-id the same start may be given again: it attaches to the run
that there is. A start that was interrupted left nothing, or all of it.

With --wait the command stays until the run is closed, with a progress bar on a
terminal, and exits with 0 exactly if the run ends completed. Ctrl-C detaches;
the work goes on.`,
		Example: `  find . -name '*.jpg' | umbel start --workflow-id thumbs --wait
  jq -c '.[]' orders.json | umbel start --jsonl --activity invoice`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			admin, done, err := a.connectAdmin(cmd)
			if err != nil {
				return err
			}
			defer done()
			spec.WorkflowID, spec.OnExisting = umbel.WorkflowID(id), onExisting[existing]
			run, err := admin.Start(ctx, spec, in.read(cmd))
			if err != nil {
				return detached(ctx, exists(err, spec.OnExisting, ""), "interrupted while starting; the same start with a --workflow-id may be given again")
			}
			p := a.printer(cmd, false)
			err = p.print(startedJSON{run.WorkflowID(), run.ID(), run.Attached()},
				fmt.Sprintf("workflow   %s\nrun        %s", safeText(string(run.WorkflowID())), run.ID()))
			if err := p.end(err); err != nil || !wait {
				return err
			}
			bar, line := newProgress(cmd.ErrOrStderr()), ""
			if bar.visible() {
				line = "\n"
			}
			idle := newIdle(cmd.ErrOrStderr(), line, a.namespace, spec)
			defer idle.stop()
			last, err := follow(ctx, admin, run.WorkflowID(), run.ID(), bar, func(r umbel.RunInfo) error {
				idle.see(r.Counts)
				return nil
			})
			if err != nil {
				return err
			}
			return outcome(last)
		},
	}
	nameVar(cmd, &spec.Activity, "activity", "activity", client.DefaultActivity, "`name` of the activity that workers run")
	nameVar(cmd, &id, "workflow-id", "workflow ID", "", "`ID` of the workflow, unique in its namespace; random unless it is given")
	nameVar(cmd, &spec.TaskQueue, "task-queue", "task queue", umbel.DefaultTaskQueue, "`name` of the pool of workers")
	nameVar(cmd, &spec.Node, "node", "node", "", "only workers that advertise this node, by `name`")
	numberVar(cmd, &spec.MaxAttempts, "max-attempts", "", umbel.DefaultRetry.MaxAttempts, 1, umbel.MaxAttempts, "how often a row is tried in all")
	durationVar(cmd, &spec.Timeout, "timeout", 0, 0, umbel.MaxDelay, "bound on one attempt; none unless it is given")
	durationVar(cmd, &spec.Delay, "delay", 0, 0, umbel.MaxDelay, "how long after the start the rows are due")
	choiceVar(cmd, &existing, "on-existing", "what to do if the workflow has a run: attach if the inputs are the same, attach, reject: ", "same", "attach", "reject")
	cmd.Flags().BoolVar(&wait, "wait", false, "stay until the run is closed")
	in.flags(cmd)
	a.addrFlag(cmd)
	a.namespaceFlag(cmd)
	a.formatFlag(cmd)
	return cmd
}
