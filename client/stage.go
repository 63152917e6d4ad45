package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/umbelhq/umbel"
)

const (
	// rowOverhead is what a row costs in a staging call besides its texts and bytes: lengths, tags, instants.
	rowOverhead = 32
	// discardTimeout bounds how long a failed start waits for the server to forget what was staged. It expires
	// by itself too.
	discardTimeout = 5 * time.Second
)

// started is what a start came to.
type started struct {
	runID    umbel.RunID
	attached bool
}

// stager sends one start: a single commit if all of it fits in one batch, else begin, stage …, commit. While
// a batch is on its way the next one is read and encoded; there is never more than that in memory.
type stager struct {
	c   *Client
	cfg *startConfig
	in  *intake

	batch []umbel.StagedRow
	size  int   // of batch, in bytes
	sent  int64 // rows handed to Stage

	begun    bool
	begin    umbel.BeginReply
	inflight chan error // holds what became of the staging call on its way; nil if there is none
	settled  bool       // what was staged is a run, or may be one: it must not be discarded
}

// start reads items to their end and makes them a run. declared are the policies of types that hold whether
// or not there is a row of theirs.
func (c *Client) start(
	ctx context.Context, cfg *startConfig, items iter.Seq2[entry, error], declared ...umbel.TypePolicy,
) (started, error) {
	s := &stager{c: c, cfg: cfg, in: newIntake(cfg)}
	for _, p := range declared {
		if err := s.in.declare(p); err != nil {
			return started{}, cfg.annotate(err)
		}
	}
	if cfg.named && cfg.onExisting == Existing {
		if err := s.ask(ctx); err != nil {
			return started{}, err
		}
		if s.begin.Exists {
			return started{runID: s.begin.RunID, attached: true}, nil
		}
	}
	defer s.close(ctx) // deferred for an iterator that panics, too
	if err := s.read(ctx, items); err != nil {
		return started{}, err
	}
	return s.commit(ctx)
}

// read takes items in. It sends all batches but the last.
func (s *stager) read(ctx context.Context, items iter.Seq2[entry, error]) error {
	for e, err := range items {
		if ctx.Err() != nil {
			return contextEnded(ctx, "start", s.cfg.id, nil, true)
		}
		if err != nil {
			return fmt.Errorf("umbel: start %q: reading item %d: %w", s.cfg.id, s.in.rows, err)
		}
		row, err := s.in.admit(e)
		if err != nil {
			return s.in.refused(err)
		}
		if err := s.failed(); err != nil {
			return err
		}
		size := rowSize(&row)
		if len(s.batch) > 0 && (s.size+size > umbel.MaxStageBytes || len(s.batch) == umbel.MaxStageRows) {
			if err := s.flush(ctx); err != nil {
				return err
			}
		}
		s.batch = append(s.batch, row)
		s.size += size
	}
	return s.join()
}

func rowSize(r *umbel.StagedRow) int {
	return rowOverhead + len(r.Type) + len(r.TaskQueue) + len(r.Node) + len(r.Key) +
		len(r.Input.ContentType) + len(r.Input.Data)
}

// ask learns, once, whether the workflow exists.
func (s *stager) ask(ctx context.Context) error {
	req := umbel.BeginRequest{Namespace: s.c.namespace, WorkflowID: s.cfg.id}
	rep, err := call(ctx, s.c, "start", s.cfg.id, func(ctx context.Context) (umbel.BeginReply, error) {
		return s.c.engine.Begin(ctx, req)
	})
	if err != nil {
		return err
	}
	s.begin, s.begun = rep, true
	return nil
}

// flush sends the batch, or drops it if the workflow exists and only its digest is wanted.
func (s *stager) flush(ctx context.Context) error {
	if !s.begun {
		if err := s.ask(ctx); err != nil {
			return err
		}
		if s.begin.Exists && s.cfg.onExisting == Reject {
			return s.exists("exists already")
		}
	}
	rows := s.batch
	s.batch, s.size = make([]umbel.StagedRow, 0, len(rows)), 0 // the engine may hold on to the old one
	if s.begin.Exists {
		return nil
	}
	if err := s.join(); err != nil {
		return err
	}
	offset := s.sent
	s.sent += int64(len(rows))
	inflight := make(chan error, 1)
	s.inflight = inflight
	go func() { inflight <- s.stage(ctx, offset, rows) }()
	return nil
}

// stage sends rows and goes on from where the server says until it has them all.
func (s *stager) stage(ctx context.Context, offset int64, rows []umbel.StagedRow) error {
	for len(rows) > 0 {
		req := umbel.StageRequest{
			Namespace: s.c.namespace, WorkflowID: s.cfg.id, StagingID: s.begin.StagingID,
			Offset: offset, Rows: rows,
		}
		rep, err := call(ctx, s.c, "start", s.cfg.id, func(ctx context.Context) (umbel.StageReply, error) {
			return s.c.engine.Stage(ctx, req)
		})
		if err != nil {
			return err
		}
		took := rep.Next - offset
		if took <= 0 || took > int64(len(rows)) {
			return &umbel.Error{
				Code: umbel.CodeInternal, Op: "start", WorkflowID: s.cfg.id,
				Reason: fmt.Sprintf("the server goes on at ordinal %d after %d rows staged at %d", rep.Next, len(rows), offset),
			}
		}
		offset, rows = rep.Next, rows[took:]
	}
	return nil
}

// failed is join that does not wait.
func (s *stager) failed() error {
	select {
	case err := <-s.inflight:
		s.inflight = nil
		return err
	default:
		return nil
	}
}

// join waits for the staging call on its way.
func (s *stager) join() error {
	if s.inflight == nil {
		return nil
	}
	err := <-s.inflight
	s.inflight = nil
	return err
}

// commit makes what was staged and the last batch a run.
func (s *stager) commit(ctx context.Context) (started, error) {
	types, digest := s.in.finish()
	if s.begin.Exists {
		if digest != s.begin.Digest {
			return started{}, s.exists("exists with other inputs or options; choose another workflow ID, or pass client.Existing to attach without comparing")
		}
		return started{runID: s.begin.RunID, attached: true}, nil
	}
	id := s.begin.StagingID
	if id == "" {
		id = umbel.NewRunID() // drawn here, so that a repeated commit knows its own run
	}
	req := umbel.CommitRequest{
		Namespace: s.c.namespace, WorkflowID: s.cfg.id, StagingID: id,
		Rows: s.batch, Scheduled: s.in.rows, Types: types, Digest: digest,
		OnExisting: umbel.OnExisting(s.cfg.onExisting),
	}
	unknown := false // whether some try may have been applied, whatever a later one was told
	rep, err := call(ctx, s.c, "start", s.cfg.id, func(ctx context.Context) (umbel.CommitReply, error) {
		rep, err := s.c.engine.Commit(ctx, req)
		unknown = unknown || err != nil && !umbel.SafeToRetry(err)
		return rep, err
	})
	if err != nil {
		if e, ok := errors.AsType[*umbel.Error](err); ok && e.Code == umbel.CodeAlreadyExists && e.RunID == id {
			s.settled = true // a try whose reply was lost made this very run
			return started{runID: id}, nil
		}
		s.settled = unknown
		return started{}, err
	}
	attached := rep.Attached && rep.RunID != id
	s.settled = !attached
	return started{runID: rep.RunID, attached: attached}, nil
}

// close ends what is on its way and discards what was staged for nothing.
func (s *stager) close(ctx context.Context) {
	_ = s.join() // the start has an error already, or none was left
	if s.sent == 0 || s.settled {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
	defer cancel()
	req := umbel.DiscardRequest{Namespace: s.c.namespace, WorkflowID: s.cfg.id, StagingID: s.begin.StagingID}
	_, err := call(ctx, s.c, "start", s.cfg.id, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.c.engine.Discard(ctx, req)
	})
	if err != nil {
		s.c.log.WarnContext(ctx, "client: staged inputs not discarded, they expire by themselves",
			"ns", s.c.namespace, "workflow", string(s.cfg.id), "err", err)
	}
}

func (s *stager) exists(reason string) error {
	return &umbel.Error{
		Code: umbel.CodeAlreadyExists, Op: "start", WorkflowID: s.cfg.id, RunID: s.begin.RunID,
		Reason: reason, NotApplied: true,
	}
}
