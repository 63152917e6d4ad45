package main

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
)

func (a *app) historyCommand() *cobra.Command {
	var (
		run     string
		ordinal int
		q       client.HistoryQuery
	)
	cmd := &cobra.Command{
		Use:   "history ID",
		Short: "Print the events of a workflow",
		Long: `Print the events of a workflow in their order: what was scheduled, each attempt
and how it ended, and how the run was closed.`,
		Example: `  umbel history thumbs --ordinal 17
  umbel history thumbs --follow --format json`,
		Args: oneID,
		RunE: func(cmd *cobra.Command, args []string) error {
			admin, done, err := a.connectAdmin(cmd)
			if err != nil {
				return err
			}
			defer done()
			q.Run = umbel.RunID(run)
			if cmd.Flags().Changed("ordinal") {
				q.Ordinal = new(int64(ordinal))
			}
			p := a.printer(cmd, q.Follow, "SEQ", "AT", "TYPE", "ORDINAL", "ATTEMPT", "WHAT")
			ctx := cmd.Context()
			err = each(admin.History(ctx, umbel.WorkflowID(args[0]), q), func(e umbel.Event) error {
				return p.print(newEventJSON(e), eventCells(e)...)
			})
			return p.end(detached(ctx, err, "detached; the work goes on. Look again with: umbel history %s", quoteArg(args[0])))
		},
	}
	numberVar(cmd, &ordinal, "ordinal", "", 0, 0, umbel.MaxOrdinal, "only the events of this row")
	cmd.Flags().BoolVar(&q.Follow, "follow", false, "wait for further events, until the run is closed")
	a.idFlags(cmd, &run)
	return cmd
}

func eventCells(e umbel.Event) []string {
	ordinal, attempt := "-", "-"
	if e.Type.OfRow() {
		ordinal = decimal(e.Ordinal)
	}
	if e.Attempt > 0 {
		attempt = strconv.Itoa(e.Attempt)
	}
	return []string{
		decimal(e.Seq), e.At.Local().Format("2006-01-02 15:04:05.000"), //nolint:gosmopolitan // for the person at this terminal
		string(e.Type), ordinal, attempt, what(e),
	}
}

// what is the part of an event that its type is about.
func what(e umbel.Event) string {
	switch e.Type {
	case umbel.WorkflowStarted:
		return "run " + string(e.RunID) + ", " + many(e.Scheduled, "row")
	case umbel.ActivityScheduled:
		parts := []string{"activity " + safeText(e.Row.Type), "task queue " + safeText(e.TaskQueue)}
		if e.Node != "" {
			parts = append(parts, "node "+safeText(e.Node))
		}
		return strings.Join(parts, ", ") + ": " + payloadCell(e.Input)
	case umbel.ActivityAttemptFailed:
		return failureCell(e.Failure) + "; again at " + clock(e.NextVisible)
	case umbel.ActivityFailed:
		return failureCell(e.Failure)
	case umbel.ActivityCompleted:
		return payloadCell(e.Result)
	case umbel.CancelRequested:
		return dash(e.Reason)
	case umbel.FanOutDecided, umbel.WorkflowClosed:
		return string(e.Status)
	case umbel.ActivityStarted, umbel.ActivityCancelled:
	}
	return "-"
}
