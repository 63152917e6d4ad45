package check

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/worker"
)

// hand is a worker that runs.
type hand struct {
	*worker.Worker

	caller *caller
	place  int // in crew
	done   chan struct{}
}

// hire starts a worker for a place in the crew.
func (w *world) hire(place int) *hand {
	w.mu.Lock()
	w.born++
	name := fmt.Sprintf("worker%d-%d", place, w.born)
	w.mu.Unlock()
	h := &hand{caller: w.connect(name), place: place, done: make(chan struct{})}
	var err error
	h.Worker, err = worker.New(h.caller, worker.Config{
		Node: crew[place].node, Concurrency: 6, Grace: 200 * time.Millisecond, PollWait: 5 * time.Second, Identity: name, Logger: quiet,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, kind := range crew[place].types {
		worker.HandleFunc(h.Worker, kind, func(ctx context.Context, in umbel.Payload) (umbel.Payload, error) {
			return w.handle(ctx, h, kind, in)
		})
	}
	go func() {
		defer close(h.done)
		_ = h.Run(context.WithoutCancel(w.t.Context())) // of a killed one it has an error
	}()
	return h
}

// stop ends the worker as its operator does.
func (h *hand) stop() {
	_ = h.Stop(context.Background())
	<-h.done
}

// kill ends it as a power cut does.
func (h *hand) kill() {
	h.caller.die()
	h.caller.cut()
	at, cancel := context.WithCancel(context.Background())
	cancel() // Stop gives the word and does not wait
	_ = h.Stop(at)
}

// errPlanned is what rows fail with that are to.
var errPlanned = errors.New("planned")

// handle runs a row as its plan says, and notes that it did.
func (w *world) handle(ctx context.Context, h *hand, kind string, in umbel.Payload) (umbel.Payload, error) {
	info := worker.Info(ctx)
	p, run := w.plan(info)
	e := w.started(h, info, kind, in, p, run)
	out := umbel.Payload{ContentType: "x/y", Data: fmt.Appendf(nil, "%s %s\x00\xff", e.token, h.caller.name)}
	takes := p.Takes
	if p.Overruns && info.Attempt == 1 {
		w.tally.add("fault", slowHandler)
		time.Sleep(3 * bound) // it heeds nothing
		w.ended(e, &out, nil)
		return out, nil
	}
	select {
	case <-ctx.Done():
		err := context.Cause(ctx)
		w.tally.add("handler ended", err.Error())
		w.ended(e, nil, err)
		return umbel.Payload{}, err
	case <-time.After(takes):
	}
	if info.Attempt <= p.Fails {
		err := umbel.Typed("planned", fmt.Errorf("%w: %s", errPlanned, e.token))
		if p.Permanent {
			err = umbel.NonRetryable(err)
		}
		w.ended(e, nil, err)
		return umbel.Payload{}, err
	}
	w.ended(e, &out, nil)
	return out, nil
}
