package check

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
)

// policy is how often rows of a run are tried, at most.
func (p runPlan) policy() []umbel.TypePolicy {
	var out []umbel.TypePolicy
	for _, kind := range []string{"a", "b", "c"} {
		if slices.ContainsFunc(p.Rows, func(r rowPlan) bool { return r.Type == kind }) {
			out = append(out, umbel.TypePolicy{
				Type: kind, StartToClose: bound,
				Retry: umbel.RetryPolicy{Initial: 50 * time.Millisecond, Cap: time.Second, MaxAttempts: p.Attempts},
			})
		}
	}
	return out
}

// staged are the rows as they are sent.
func (w *world) staged(i int, p runPlan) []umbel.StagedRow {
	rows := make([]umbel.StagedRow, len(p.Rows))
	for o, r := range p.Rows {
		rows[o] = umbel.StagedRow{
			Type: r.Type, Node: r.Node, Delay: r.Delay, Input: w.input(i, r), Key: fmt.Sprintf("k%d", r.Ordinal),
		}
		if r.NotBefore > 0 {
			rows[o].NotBefore = w.notBefore(r)
		}
	}
	return rows
}

func (w *world) notBefore(r rowPlan) time.Time {
	return w.begun.Add(w.Skew + r.NotBefore).Truncate(time.Millisecond)
}

// again repeats a call while nobody serves it.
func again(ctx context.Context, call func() error) error {
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := call()
		if !errors.Is(err, umbel.ErrUnavailable) || ctx.Err() != nil {
			return err
		}
		time.Sleep(wait)
	}
}

// start starts a run, and returns its ID.
func (w *world) start(ctx context.Context, c *caller, i int, p runPlan) (umbel.RunID, error) {
	rows := w.staged(i, p)
	commit := umbel.CommitRequest{
		Namespace: namespace, WorkflowID: p.ID, Scheduled: int64(len(rows)), Types: p.policy(), Digest: sha256.Sum256([]byte(p.ID)),
	}
	for {
		if p.Staged {
			var b umbel.BeginReply
			err := again(ctx, func() (err error) {
				b, err = c.Begin(ctx, umbel.BeginRequest{Namespace: namespace, WorkflowID: p.ID})
				return err
			})
			if err != nil {
				return "", err
			}
			if b.Exists {
				return b.RunID, nil
			}
			if err := w.stage(ctx, c, p, b.StagingID, rows); errors.Is(err, umbel.ErrStagingLost) {
				continue
			} else if err != nil {
				return "", err
			}
			commit.StagingID = b.StagingID
		} else {
			commit.Rows = rows
		}
		var rep umbel.CommitReply
		err := again(ctx, func() (err error) { rep, err = c.Commit(ctx, commit); return err })
		if errors.Is(err, umbel.ErrStagingLost) {
			continue
		}
		if rep.Attached && p.Staged && rep.RunID != commit.StagingID {
			d := umbel.DiscardRequest{Namespace: namespace, WorkflowID: p.ID, StagingID: commit.StagingID}
			_ = again(ctx, func() error { return c.Discard(ctx, d) })
		}
		return rep.RunID, err
	}
}

func (w *world) stage(ctx context.Context, c *caller, p runPlan, id umbel.StagingID, rows []umbel.StagedRow) error {
	for at := int64(0); at < int64(len(rows)); {
		part := rows[at:min(at+pieceOfRun, int64(len(rows)))]
		err := again(ctx, func() error {
			rep, err := c.Stage(ctx, umbel.StageRequest{Namespace: namespace, WorkflowID: p.ID, StagingID: id, Offset: at, Rows: part})
			if err == nil {
				at = rep.Next
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// run starts a run, cancels what is to be cancelled, and reads its results until it is closed.
func (w *world) run(ctx context.Context, i int, p runPlan) {
	time.Sleep(p.At)
	c := w.connect("client")
	w.starting(p)
	var ids [2]umbel.RunID
	var parts sync.WaitGroup
	for j := range ids {
		if j == 1 && !p.Twice {
			continue
		}
		from := c
		if j == 1 {
			from = w.connect("second client")
		}
		parts.Go(func() {
			id, err := w.start(ctx, from, i, p)
			if err != nil {
				w.wrongf("%s: it cannot be started: %v", p.ID, err)
			}
			ids[j] = id
		})
	}
	parts.Wait()
	if ids[1] != "" && ids[0] != ids[1] {
		w.wrongf("%s: two starts made the runs %s and %s", p.ID, ids[0], ids[1])
	}
	w.know(i, p, ids[0])
	if p.CancelAt > 0 {
		parts.Go(func() {
			time.Sleep(p.CancelAt)
			w.cancel(ctx, w.connect("operator"), p)
		})
	}
	w.gather(ctx, c, p)
	parts.Wait()
}

func (w *world) cancel(ctx context.Context, c *caller, p runPlan) {
	r := umbel.CancelRequest{Namespace: namespace, WorkflowID: p.ID, Reason: "planned", Ordinals: p.CancelRows}
	if err := again(ctx, func() error { _, err := c.Cancel(ctx, r); return err }); err != nil {
		w.wrongf("%s: it cannot be cancelled: %v", p.ID, err)
		return
	}
	w.cancelled(p)
}

// gather reads the results as they come.
func (w *world) gather(ctx context.Context, c *caller, p runPlan) {
	cl, err := client.New(c, client.Config{Logger: quiet})
	if err != nil {
		w.t.Fatal(err)
	}
	run := client.AttachRaw(cl, p.ID)
	var results []umbel.Result[umbel.Payload]
	for r, err := range run.Results(ctx, client.WithInputs()) {
		if err != nil {
			w.wrongf("%s: its results cannot be read to the end: %v", p.ID, err)
			return
		}
		results = append(results, r)
	}
	w.gathered(p, results)
	var d umbel.DescribeReply
	describe := umbel.DescribeRequest{Namespace: namespace, WorkflowID: p.ID}
	if err := again(ctx, func() (err error) { d, err = c.Describe(ctx, describe); return err }); err != nil {
		w.wrongf("%s: it cannot be described: %v", p.ID, err)
	} else if d.Status == umbel.StatusRunning {
		w.wrongf("%s: its results are all there, and it runs", p.ID)
	}
	err = again(ctx, func() error {
		_, err := c.History(ctx, umbel.HistoryRequest{Namespace: namespace, WorkflowID: p.ID, From: 1})
		return err
	})
	if err != nil {
		w.wrongf("%s: its history cannot be read: %v", p.ID, err)
	}
	err = again(ctx, func() error { _, err := c.List(ctx, umbel.ListRequest{Namespace: namespace}); return err })
	if err != nil {
		w.wrongf("runs cannot be listed: %v", err)
	}
}
