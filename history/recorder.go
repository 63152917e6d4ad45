package history

import (
	"context"
	"errors"
	"sync"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/outbox"
)

// Recorder writes one workflow's history. It holds the workflow's write token: opening another Recorder for
// the workflow fences it, and every later write of it is umbel.ErrFenced. It is safe for concurrent use; its
// writes are one at a time.
type Recorder struct {
	store Store
	wf    Workflow

	mu sync.Mutex
	at Position
}

// Open takes the workflow's write token.
func Open(ctx context.Context, store Store, wf Workflow) (*Recorder, error) {
	at, err := store.Acquire(ctx, wf)
	if err != nil {
		return nil, err
	}
	return &Recorder{store: store, wf: wf, at: at}, nil
}

// Head returns the last sequence number that the Recorder knows.
func (r *Recorder) Head() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at.Head
}

// Append adds events, as many as [Store.Append] takes. A conflict leaves head and store as they were; [Recorder.Reload] then reads the head
// anew.
func (r *Recorder) Append(ctx context.Context, events ...umbel.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.move(r.store.Append(ctx, r.wf, r.at, events))
}

// Dispatch records a fan-out: events and rows appear together, or, with any error, not at all.
func (r *Recorder) Dispatch(ctx context.Context, items ...Item) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.move(r.store.Dispatch(ctx, r.wf, r.at, items))
}

// Complete records an outcome. A workflow that a server serves too moves on without the Recorder; a
// completion, which is checked by ordinal and not by head, then reads the head anew and tries again.
func (r *Recorder) Complete(ctx context.Context, c Completion) (Outcome, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		outcome, head, err := r.store.Complete(ctx, r.wf, r.at, c)
		if errors.Is(err, umbel.ErrConflict) {
			if err = r.reload(ctx); err == nil {
				continue
			}
		}
		if err = r.move(head, err); err != nil {
			return "", err
		}
		return outcome, nil
	}
}

// Rearm puts rows of unresolved ordinals back after a crash. It writes no event.
func (r *Recorder) Rearm(ctx context.Context, rows []outbox.Row) error {
	return r.store.Outbox().Rearm(ctx, rows)
}

// Reload reads the head anew, after a conflict. The write token stays: a fenced Recorder stays fenced.
func (r *Recorder) Reload(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reload(ctx)
}

func (r *Recorder) reload(ctx context.Context) error {
	return r.move(r.store.Head(ctx, r.wf))
}

func (r *Recorder) move(head int64, err error) error {
	if err != nil {
		return err
	}
	r.at.Head = head
	return nil
}
