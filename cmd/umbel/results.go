package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
)

func (a *app) resultsCommand() *cobra.Command {
	var (
		run, status, from string
		q                 client.ResultsQuery
	)
	cmd := &cobra.Command{
		Use:   "results ID",
		Short: "Print the results of a run",
		Long: `Print the results that a run has, as they were recorded; with --follow also those
to come, until it is closed. With --format raw the bytes of each result are
written with a newline behind them, and rows without one are named on standard
error. Each result has a cursor, from which --from goes on after it.`,
		Example: `  umbel results thumbs --ordered --format raw
  umbel results thumbs --status failed
  umbel results thumbs --follow --format json`,
		Args: oneID,
		RunE: func(cmd *cobra.Command, args []string) error {
			admin, done, err := a.connectAdmin(cmd)
			if err != nil {
				return err
			}
			defer done()
			q.Run, q.Status, q.From = umbel.RunID(run), umbel.Status(status), umbel.Cursor(from)
			header := []string{"ORDINAL", "STATUS", "ATTEMPT", "KEY", "RESULT"}
			if q.WithInputs {
				header = []string{"ORDINAL", "STATUS", "ATTEMPT", "KEY", "INPUT", "RESULT"}
			}
			p := a.printer(cmd, q.Follow, header...)
			ctx := cmd.Context()
			err = each(admin.Results(ctx, umbel.WorkflowID(args[0]), q), func(r umbel.Result[umbel.Payload]) error {
				if a.format == formatRaw {
					return p.raw(cmd, r)
				}
				return p.print(newResultJSON(r, q.WithInputs), resultCells(r, q.WithInputs)...)
			})
			return p.end(detached(ctx, err, "detached; the work goes on. Look again with: umbel results %s", quoteArg(args[0])))
		},
	}
	cmd.Flags().BoolVar(&q.Ordered, "ordered", false, "by ordinal, in place of as they were recorded")
	choiceVar(cmd, &status, "status", "only results of this status: ",
		string(umbel.StatusCompleted), string(umbel.StatusFailed), string(umbel.StatusCancelled))
	cmd.Flags().BoolVar(&q.Follow, "follow", false, "wait for the rows that are open, until the run is closed")
	cmd.Flags().StringVar(&from, "from", "", "go on after the result that had this `cursor`")
	cmd.Flags().BoolVar(&q.WithInputs, "inputs", false, "print each row's input, too")
	a.idFlags(cmd, &run, formatRaw)
	return cmd
}

func resultCells(r umbel.Result[umbel.Payload], withInput bool) []string {
	cells := []string{decimal(r.Ordinal), string(r.Status), decimal(int64(r.Attempt)), dash(r.Key)}
	if withInput {
		cells = append(cells, payloadCell(r.Input))
	}
	if r.Err != nil {
		return append(cells, failureCell(failureOf(r.Err)))
	}
	return append(cells, payloadCell(r.Value))
}

func hasValue(r umbel.Result[umbel.Payload]) bool { return r.Err == nil }

// raw writes a result's bytes and a newline.
func (p *printer) raw(cmd *cobra.Command, r umbel.Result[umbel.Payload]) error {
	if !hasValue(r) {
		sayFailed(cmd, r)
		return nil
	}
	_, _ = p.w.Write(r.Value.Data) // Flush returns its error
	_ = p.w.WriteByte('\n')
	if p.live {
		return p.w.Flush()
	}
	return nil
}

// sayFailed names a row that has no result.
func sayFailed(cmd *cobra.Command, r umbel.Result[umbel.Payload]) {
	f := failureOf(r.Err)
	text := string(r.Status)
	switch {
	case r.Status == umbel.StatusFailed:
		text += ": " + f.Type + ": " + f.Message
	case f.Message != text: // a cancel without a reason has only its name
		text += ": " + f.Message
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "umbel: ordinal %d %s\n", r.Ordinal, safeText(text))
}
