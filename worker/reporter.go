package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/attempt"
)

const (
	// reportTimeout is when a report is given up as hung, and made again.
	reportTimeout = 15 * time.Second
	// itemOverhead is what an item takes on the wire beside its texts and bytes, generously.
	itemOverhead = 64
	// maxYields bounds how often the reporter steps back for handlers that are about to return.
	maxYields = 8
)

// reportLoop reports what handlers leave, one call at a time: what finishes meanwhile goes in the next. Nothing
// waits for company. A call that fails is made again until it is answered; it loses nothing. It ends with ctx.
func (w *Worker) reportLoop(ctx context.Context) {
	failures := newStreak()
	most := umbel.MaxReportItems
	for {
		batch := w.nextBatch(ctx, most)
		if batch == nil {
			return
		}
		verdicts, err := w.report(ctx, batch)
		if err != nil && len(batch) == 1 && faulty(err) {
			verdicts, err = []umbel.Verdict{{Code: umbel.Refused, Err: asError(err)}}, nil
		}
		if err == nil {
			w.acknowledge(batch, verdicts)
			most = umbel.MaxReportItems
			if failures.over() {
				w.log.Info("reporting again")
			}
			continue
		}
		w.requeue(batch)
		if ctx.Err() != nil {
			return
		}
		if faulty(err) {
			most = max(len(batch)/2, 1) // one item spoils the call: close in on it
			continue
		}
		wait, warn := failures.failed(err)
		if warn {
			w.log.Warn("cannot report, trying again", "err", err)
		}
		w.pause(ctx, wait)
	}
}

// faulty reports whether the engine found fault with what was sent, so that sending it again is in vain.
func faulty(err error) bool {
	return errors.Is(err, umbel.ErrInvalid) || errors.Is(err, umbel.ErrLimit)
}

func asError(err error) *umbel.Error {
	if e, ok := errors.AsType[*umbel.Error](err); ok {
		return e
	}
	return &umbel.Error{Code: umbel.CodeInternal, Err: err}
}

// nextBatch waits for outcomes and takes as many as a report holds, at most most. It returns nil once ctx ends.
func (w *Worker) nextBatch(ctx context.Context, most int) []*hold {
	for {
		if ctx.Err() != nil {
			return nil
		}
		w.yield()
		w.mu.Lock()
		batch := w.cutBatch(most)
		w.mu.Unlock()
		if len(batch) > 0 {
			return batch
		}
		select {
		case <-ctx.Done():
		case <-w.queued:
		}
	}
}

// yield steps back for handlers that can return now, as long as they do. It waits for nothing: with no handler
// ready to run it costs a microsecond. With quick handlers it makes one call of what would be ten.
func (w *Worker) yield() {
	before := -1
	for range maxYields {
		w.mu.Lock()
		busy := w.busy
		w.mu.Unlock()
		if busy == 0 || busy == before {
			return
		}
		before = busy
		runtime.Gosched()
	}
}

// cutBatch takes the head of the queue. mu is held.
func (w *Worker) cutBatch(most int) []*hold {
	var batch []*hold
	n, size := 0, 0
	for _, h := range w.queue {
		if h.lost && h.item.Outcome != umbel.OutcomeCompleted {
			n++
			w.stats.Dropped++
			w.letGo(h) // only a success can still count
			continue
		}
		if len(batch) == most || len(batch) > 0 && size+h.size > umbel.MaxReportBytes {
			break
		}
		n++
		size += h.size
		h.flying = true
		batch = append(batch, h)
	}
	rest := copy(w.queue, w.queue[n:])
	clear(w.queue[rest:])
	w.queue = w.queue[:rest]
	return batch
}

// requeue puts a batch that was not answered back to the head of the queue.
func (w *Worker) requeue(batch []*hold) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stats.ReportErrors++
	for _, h := range batch {
		h.flying = false
	}
	w.queue = append(batch, w.queue...)
}

// report makes one call.
func (w *Worker) report(ctx context.Context, batch []*hold) ([]umbel.Verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	items := make([]umbel.ReportItem, len(batch)) // not reused: an engine that hung may still read it
	for i, h := range batch {
		items[i] = h.item
	}
	var reply umbel.ReportReply
	err := guard(func() (err error) {
		reply, err = w.engine.Report(ctx, umbel.ReportRequest{
			Namespace: w.cfg.Namespace, Worker: w.cfg.Identity, Items: items,
		})
		return err
	})
	if err == nil && len(reply.Verdicts) != len(items) {
		err = &umbel.Error{
			Code: umbel.CodeInternal, Op: "report",
			Reason: fmt.Sprintf("%d verdicts for %d items", len(reply.Verdicts), len(items)),
		}
	}
	return reply.Verdicts, err
}

// acknowledge ends the holds of a batch as its verdicts say.
func (w *Worker) acknowledge(batch []*hold, verdicts []umbel.Verdict) {
	var refused error
	w.mu.Lock()
	w.stats.Reports++
	for i, h := range batch {
		h.flying = false
		switch v := verdicts[i]; v.Code {
		case umbel.Recorded, umbel.Retrying:
			if h.item.Outcome == umbel.OutcomeCompleted {
				w.stats.Completed++
			} else {
				w.stats.Failed++
			}
		case umbel.Released:
			w.stats.Released++
		case umbel.Dropped, umbel.Stale:
			w.stats.Dropped++
		default:
			w.stats.Refused++
			refused = &umbel.Error{Code: umbel.CodeInternal, Reason: fmt.Sprintf("verdict %d", v.Code)}
			if v.Err != nil {
				refused = v.Err
			}
			if v.Code == umbel.Refused && h.item.Outcome == umbel.OutcomeCompleted && !h.refused {
				// The result breaks a rule of the server, and would again: a failure that says so ends the row.
				h.refused = true
				item := h.spec().Failed(attempt.InvalidResult(refused))
				item.Token = h.row.Token
				w.setItem(h, item)
				w.queue = append(w.queue, h)
				continue
			}
		}
		w.letGo(h)
	}
	w.mu.Unlock()
	if refused != nil {
		w.log.Warn("the engine refused an outcome", "err", refused)
	}
}

// itemSize is about what an item takes on the wire.
func itemSize(it umbel.ReportItem) int {
	n := itemOverhead + len(it.Token) + len(it.Result.ContentType) + len(it.Result.Data)
	for f := it.Failure; f != nil; f = f.Cause {
		n += itemOverhead + len(f.Type) + len(f.Message) + len(f.Stack)
	}
	return n
}
