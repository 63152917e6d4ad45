package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
)

type cancelledJSON struct {
	WorkflowID umbel.WorkflowID `json:"workflow_id"`
	Cancelled  int64            `json:"cancelled"`
}

func (a *app) cancelCommand() *cobra.Command {
	var (
		run, reason string
		ordinals    []int64
		f           = client.ListFilter{Status: umbel.StatusRunning}
		yes         bool
	)
	cmd := &cobra.Command{
		Use:   "cancel ID | cancel --prefix TEXT | cancel --activity NAME",
		Short: "Cancel runs, or rows of one",
		Long: `Cancel a run, or some of its rows; or all running runs that a filter names. Once
it has returned, none of these rows is begun any more, and commands that run are
told to end. What is resolved stays as it is; cancelling twice is no error.`,
		Example: `  umbel cancel thumbs --reason "wrong size"
  umbel cancel thumbs --ordinal 7,9
  umbel cancel --prefix thumbs- --yes`,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.Activity == "" && f.Prefix == "" {
				return oneID(cmd, args)
			}
			switch {
			case len(args) > 0:
				return usagef("give either an ID or --prefix and --activity, not both")
			case run != "" || ordinals != nil:
				return usagef("--run and --ordinal need an ID")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			admin, done, err := a.connectAdmin(cmd)
			if err != nil {
				return err
			}
			defer done()
			ids := args
			if len(ids) == 0 {
				if ids, err = a.filtered(cmd, admin, f, yes); err != nil {
					return err
				}
			}
			p := a.printer(cmd, true)
			for _, id := range ids {
				n, err := admin.Cancel(cmd.Context(), umbel.WorkflowID(id), umbel.RunID(run), reason, ordinals...)
				if err != nil {
					return p.end(err)
				}
				if err := p.print(cancelledJSON{umbel.WorkflowID(id), n}, "cancelled "+many(n, "row")+" of "+safeText(id)); err != nil {
					return err
				}
			}
			return p.end(nil)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`text` that history keeps")
	cmd.Flags().Var(&numbers[int64]{&ordinals, 0, umbel.MaxOrdinal}, "ordinal", "only these rows of the run")
	nameVar(cmd, &f.Prefix, "prefix", "prefix", "", "every running workflow whose ID begins with this `text`")
	nameVar(cmd, &f.Activity, "activity", "activity", "", "every running workflow with rows of this activity, by `name`")
	cmd.Flags().BoolVar(&yes, "yes", false, "do it; without it a filter only counts")
	a.idFlags(cmd, &run)
	return cmd
}

// filtered returns the running workflows that a filter names, and says how many they are. Without yes it is an
// error: nothing is done to many at once by mistake.
func (a *app) filtered(cmd *cobra.Command, admin *client.Admin, f client.ListFilter, yes bool) ([]string, error) {
	var ids []string
	err := each(admin.List(cmd.Context(), f), func(r umbel.RunInfo) error {
		ids = append(ids, string(r.WorkflowID))
		return nil
	})
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "umbel: filter matches "+many(int64(len(ids)), "running workflow"))
	if !yes && len(ids) > 0 {
		return nil, usagef("nothing was cancelled: add --yes to cancel them")
	}
	return ids, nil
}
