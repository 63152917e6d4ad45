// Package worker runs activities: it polls an engine for rows, hands each to the function that is registered
// for its activity type, keeps the leases alive and reports what came of it.
//
//	w, err := worker.New(engine, worker.Config{TaskQueue: "images", Concurrency: 32})
//	worker.Handle(w, Thumbnail, func(ctx context.Context, in Image) (Thumb, error) { … })
//	err = w.Run(ctx) // until ctx ends; then it drains
//
// A row may run more than once, on this worker or another, while its outcome is recorded once; [Info] has a key
// that is equal over the attempts, for services that tell repeats apart by one.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/umbelhq/umbel"
)

// Engine is what a worker needs of an engine. It polls, renews and reports, and can read results.
type Engine interface {
	umbel.Poller
	umbel.Gatherer
}

// Errors of [Worker.Run].
var (
	// ErrRanBefore: Run was called twice.
	ErrRanBefore = errors.New("worker: Run was called before: a Worker runs once, make another with New")
	// ErrStopped: Stop or Drain came before Run.
	ErrStopped = errors.New("worker: stopped before Run: a Worker runs once, make another with New")
)

// Worker runs the rows of one task queue. Make it with [New], register handlers, then call [Worker.Run], once.
// All methods are safe for concurrent use.
type Worker struct {
	engine Engine
	cfg    Config
	log    *slog.Logger

	quit  chan struct{} // closed: take no more rows
	kill  chan struct{} // closed: cancel the rows in hand
	hurry chan struct{} // closed: the worker stops: reports that failed are repeated soon
	done  chan struct{} // closed: Run has returned, or never will take place

	handlers sync.WaitGroup // one goroutine a row, and the timers of timeouts

	// Wake-ups, each of capacity 1: a poke says that there is something to look at.
	room      chan struct{} // to the poller
	queued    chan struct{} // to the reporter
	shortened chan struct{} // to the lease loop: the next renewal must come earlier
	settled   chan struct{} // to Run, while it stops

	mu       sync.Mutex // guards what follows, and the fields of hold and activityType that say so
	state    state
	types    map[string]*activityType
	allTypes []string          // names of types, sorted; fixed when Run begins
	groups   [][]*activityType // the types by whose slots bound them; fixed when Run begins
	every    time.Duration     // between two renewals

	busy         int     // handlers that have not returned
	stuck        int     // those of them whose attempt is over
	held         []*hold // rows not yet acknowledged
	queue        []*hold // those of them whose outcome waits for a report
	queuedBytes  int     // of the outcomes not yet acknowledged
	pollerWaits  bool
	renewFailing bool  // the last renewal call failed
	stats        Stats // counters only
}

type state int

const (
	stateNew state = iota
	stateRunning
	stateStopping // takes no more rows
	stateOver
)

// New returns a worker on e. It returns all problems of c at once; each matches [umbel.ErrInvalid] and names the
// field. Nothing is called before [Worker.Run].
func New(e Engine, c Config) (*Worker, error) {
	c = c.withDefaults()
	err := c.validate()
	if e == nil {
		err = errors.Join(umbel.Invalid("engine", "nil", "must not be nil: pass what server.Open returns"), err)
	}
	if err != nil {
		return nil, fmt.Errorf("worker: config: %w", err)
	}
	return &Worker{
		engine: e, cfg: c,
		log:       c.Logger.With("ns", c.Namespace, "tq", c.TaskQueue, "worker", c.Identity),
		quit:      make(chan struct{}),
		kill:      make(chan struct{}),
		hurry:     make(chan struct{}),
		done:      make(chan struct{}),
		room:      make(chan struct{}, 1),
		queued:    make(chan struct{}, 1),
		shortened: make(chan struct{}, 1),
		settled:   make(chan struct{}, 1),
		types:     make(map[string]*activityType),
		every:     renewEvery,
	}, nil
}

// Run takes rows and runs them until ctx ends, or [Worker.Drain] or [Worker.Stop] is called; then it takes no
// more, finishes as they say, reports, and returns. It blocks until then.
//
// When ctx ends, handlers may go on for [Config.Grace]; then their contexts end with [umbel.ErrWorkerStopping],
// and what returns without success is released to other workers at no cost to its attempts. Handlers get the
// values of ctx, not its end.
//
// Run returns nil when it ended as it was asked to, at once if ctx has ended already; [ErrRanBefore] and
// [ErrStopped] if it may not run; an error that matches [umbel.ErrInvalid] if nothing is registered or the engine
// refuses the worker's polls as invalid. No other error of the engine ends it: it logs and tries again. Handlers
// that ignore the end of their context for five seconds are left behind, and outcomes that cannot be reported for
// five seconds more are given up; the error counts them, and the rows run again.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.begin(); err != nil {
		return err
	}
	defer w.over()
	if ctx.Err() != nil {
		return nil
	}
	w.log.Info("worker started")

	base := context.WithoutCancel(ctx)
	loopCtx, stopLoops := context.WithCancel(base)
	var loops sync.WaitGroup
	loops.Go(func() { w.renewLoop(loopCtx) })
	loops.Go(func() { w.reportLoop(loopCtx) })

	pollCtx, stopPolling := context.WithCancel(ctx)
	var pollErr error
	polled := make(chan struct{})
	loops.Go(func() {
		defer close(polled)
		pollErr = w.pollLoop(pollCtx, base)
	})
	select {
	case <-pollCtx.Done():
	case <-w.quit:
	case <-polled:
	}
	stopPolling()
	<-polled

	err := w.finish(ctx, pollErr != nil)
	stopLoops()
	loops.Wait()
	w.log.Info("worker stopped")
	if pollErr != nil {
		return errors.Join(fmt.Errorf("worker: poll: %w", pollErr), err)
	}
	return err
}

// begin moves to running and fixes what is registered.
func (w *Worker) begin() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch w.state {
	case stateNew:
	case stateOver:
		if w.allTypes == nil {
			return ErrStopped
		}
		return ErrRanBefore
	default:
		return ErrRanBefore
	}
	if len(w.types) == 0 {
		return fmt.Errorf("worker: %w", umbel.Invalid("activity types", "none", "must be registered: call worker.Handle before Run"))
	}
	w.state = stateRunning
	var shared []*activityType
	for name, t := range w.types {
		w.allTypes = append(w.allTypes, name)
		if t.limit == 0 {
			shared = append(shared, t)
		} else {
			w.groups = append(w.groups, []*activityType{t})
		}
	}
	if len(shared) > 0 {
		w.groups = append(w.groups, shared)
	}
	slices.Sort(w.allTypes)
	return nil
}

func (w *Worker) over() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state = stateOver
	close(w.done)
}

// poke wakes whoever waits on c, now or when it next looks.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
