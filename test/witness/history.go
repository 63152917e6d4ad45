package witness

import (
	"fmt"
	"log/slog"
	"maps"
	"testing"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/testredis"
	"github.com/umbelhq/umbel/server"
)

// Told is what a history says of a run.
type Told struct {
	Events   int64
	Failures map[string]int // attempts that failed and were followed by another, by the type of their error
	Attempts int            // the most that one ordinal took
}

// attempt is a try at an ordinal.
type attempt struct {
	ordinal int64
	number  int
}

// ReadHistory reads all of a workflow's history through a server of its own and holds it to the promises: no gap (8),
// one terminal per ordinal (6), each attempt that ended after its ActivityStarted (7), one close, at the end (10).
func ReadHistory(t *testing.T, redis *testredis.Redis, id umbel.WorkflowID, n int64) Told {
	t.Helper()
	engine, err := server.Open(t.Context(), redis.NewClient(t), server.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	d, err := engine.Describe(t.Context(), umbel.DescribeRequest{Namespace: umbel.DefaultNamespace, WorkflowID: id})
	if err != nil {
		t.Fatal(err)
	}
	if d.Status != umbel.StatusCompleted || d.Counts != (umbel.Counts{Scheduled: n, Completed: n}) {
		t.Errorf("the run is %s with %+v, want all %d completed", d.Status, d.Counts, n)
	}

	c := NewChecker()
	for head := int64(1); c.seq < head; {
		page, err := engine.History(t.Context(), umbel.HistoryRequest{
			Namespace: umbel.DefaultNamespace, WorkflowID: id, From: c.seq + 1,
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Events) == 0 {
			t.Fatalf("history ends at %d, its head is %d", c.seq, page.Head)
		}
		for _, e := range page.Events {
			c.Event(e)
		}
		head = page.Head
	}
	c.End(n)
	for _, p := range c.Problems[:min(len(c.Problems), 20)] {
		t.Error(p)
	}
	c.Events = c.seq
	return c.Told
}

// Checker reads a history event by event and notes what does not hold of it. Make it with [NewChecker]; it is for one
// goroutine.
type Checker struct {
	Told

	Problems []string // what was found so far

	seq            int64
	last           umbel.EventType
	scheduled      map[int64]bool
	started, ended map[attempt]bool
	terminal       map[int64]umbel.EventType
}

// NewChecker returns a checker that expects the first event.
func NewChecker() *Checker {
	return &Checker{
		started: map[attempt]bool{}, ended: map[attempt]bool{}, terminal: map[int64]umbel.EventType{},
		scheduled: map[int64]bool{}, Told: Told{Failures: map[string]int{}},
	}
}

func (c *Checker) errorf(format string, args ...any) {
	c.Problems = append(c.Problems, fmt.Sprintf(format, args...))
}

// Event reads the next event.
func (c *Checker) Event(e umbel.Event) {
	if e.Seq != c.seq+1 {
		c.errorf("event %d follows event %d", e.Seq, c.seq)
	}
	c.seq = e.Seq
	if c.last == umbel.WorkflowClosed || c.seq == 1 && e.Type != umbel.WorkflowStarted {
		c.errorf("event %d: %s after %q", e.Seq, e.Type, c.last)
	}
	c.last = e.Type
	try := attempt{e.Ordinal, e.Attempt}
	switch e.Type { //nolint:exhaustive // the others need nothing of their own
	case umbel.ActivityScheduled:
		once(c, e, c.scheduled, e.Ordinal)
	case umbel.ActivityStarted:
		once(c, e, c.started, try)
		c.Attempts = max(c.Attempts, e.Attempt)
		if before := (attempt{e.Ordinal, e.Attempt - 1}); e.Attempt > 1 && !c.ended[before] {
			c.errorf("event %d: %+v has started, %+v has not ended", e.Seq, try, before)
		}
	case umbel.ActivityAttemptFailed:
		once(c, e, c.ended, try)
		if e.Failure == nil {
			c.errorf("event %d: %+v failed without a failure", e.Seq, try)
			return
		}
		c.Failures[e.Failure.Type]++
	case umbel.WorkflowStarted, umbel.CancelRequested, umbel.FanOutDecided, umbel.WorkflowClosed:
		return
	}
	if !c.scheduled[e.Ordinal] {
		c.errorf("event %d: %s of an ordinal that was not scheduled: %+v", e.Seq, e.Type, try)
	}
	if before := c.terminal[e.Ordinal]; before != "" {
		c.errorf("event %d: %s of %+v, which is resolved by %s", e.Seq, e.Type, try, before)
	}
	attempted := e.Type.Terminal() && e.Type != umbel.ActivityCancelled || e.Type == umbel.ActivityAttemptFailed
	if attempted && !c.started[try] {
		c.errorf("event %d: %s of %+v, which has not started", e.Seq, e.Type, try)
	}
	if e.Type.Terminal() {
		c.terminal[e.Ordinal] = e.Type
	}
}

// End is called after the last event of a run of n rows.
func (c *Checker) End(n int64) {
	if int64(len(c.scheduled)) != n || int64(len(c.terminal)) != n {
		c.errorf("history has %d scheduled and %d resolved ordinals, want %d of both", len(c.scheduled), len(c.terminal), n)
	}
	if c.last != umbel.WorkflowClosed {
		c.errorf("history ends with %q, want %s", c.last, umbel.WorkflowClosed)
	}
}

// once notes a problem if an event says again what was said before.
func once[K comparable](c *Checker, e umbel.Event, seen map[K]bool, k K) {
	if seen[k] {
		c.errorf("event %d: %s of %+v twice", e.Seq, e.Type, k)
	}
	seen[k] = true
}

// Only fails the test if attempts failed for another reason.
func (h Told) Only(t *testing.T, kind string) {
	t.Helper()
	for other := range maps.Keys(h.Failures) {
		if other != kind {
			t.Errorf("%d attempts failed with %s", h.Failures[other], other)
		}
	}
}
