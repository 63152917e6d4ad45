package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/internal/testredis"
	"github.com/umbelhq/umbel/worker"
)

// labels are n inputs that say whose they are.
func labels(run string, n int) func(func(string) bool) {
	return func(yield func(string) bool) {
		for i := range n {
			if !yield(run + "-" + strconv.Itoa(i)) {
				return
			}
		}
	}
}

// aof is where Redis keeps its append-only files.
func (s *stack) aof() string {
	s.t.Helper()
	c := s.redis.Client
	dir := c.ConfigGet(s.t.Context(), "dir").Val()["dir"]
	if sub := c.ConfigGet(s.t.Context(), "appenddirname").Val()["appenddirname"]; sub != "" { // Redis 7
		return filepath.Join(dir, sub)
	}
	return dir // before, one file among what else is there
}

// Case 57: an older append-only file is restored under live workers, and new runs are started. No result is recorded
// in another run; runs that the restore took back to running end again; a reader notices, and yields each ordinal once.
func TestCase57Restore(t *testing.T) {
	t.Parallel()
	onOwn(t, func(s *stack) {
		ctx := s.t.Context()
		a, b := s.open(lease(2*time.Second)), s.open()
		for _, e := range []umbel.Engine{a, b} {
			s.work(e, worker.Config{Concurrency: 20}, func(w *worker.Worker) {
				worker.Handle(w, echo, func(_ context.Context, in string) (string, error) {
					time.Sleep(2 * time.Millisecond)
					return in, nil
				})
			})
		}
		const n = 3000
		begin := func(id string, n int) *client.Run[string] {
			run, err := client.FanOut(ctx, s.connect(a), echo, labels(id, n), client.WorkflowID(umbel.WorkflowID(id)))
			if err != nil {
				s.t.Fatal(err)
			}
			return run
		}
		run := begin("old", n)
		s.eventually("some rows are done", func() bool { return s.describe(a, "old").Counts.Completed > n/10 })
		dir, copied := s.aof(), filepath.Join(s.t.TempDir(), "aof")
		if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
			s.t.Fatal(err)
		}
		begin("lost", 50) // is not in the copy
		if err := run.Wait(ctx); err != nil {
			s.t.Fatal(err)
		}
		end := s.cursorAtEnd(a, "old")

		next := begin("young", 20) // some of it may be in workers' hands
		s.redis.Kill(s.t)
		if err := errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(copied))); err != nil {
			s.t.Fatal(err)
		}
		s.redis.Restart(s.t)
		_ = next

		// the reader's place is past the head now
		_, err := a.Results(ctx, umbel.ResultsRequest{Namespace: ns, WorkflowID: "old", Cursor: end})
		if !errors.Is(err, umbel.ErrCursorLost) {
			s.t.Errorf("a cursor past the head: %v", err)
		}
		var runs []*client.Run[string]
		for i := range 5 {
			runs = append(runs, begin("new"+strconv.Itoa(i), 200))
		}
		runs = append(runs, begin("lost", 50), client.Attach(s.connect(b), echo, "old"))
		for _, run := range runs {
			seen := map[int64]bool{}
			for r, err := range run.Results(ctx) {
				if err != nil {
					s.t.Fatalf("%s: %v", run.WorkflowID(), err)
				}
				if want := fmt.Sprintf("%s-%d", run.WorkflowID(), r.Ordinal); r.Value != want || seen[r.Ordinal] {
					s.t.Fatalf("%s: ordinal %d is %q (again: %t)", run.WorkflowID(), r.Ordinal, r.Value, seen[r.Ordinal])
				}
				seen[r.Ordinal] = true
			}
			c, err := run.Progress(ctx)
			if err != nil || int64(len(seen)) != c.Scheduled || c.Completed != c.Scheduled {
				s.t.Errorf("%s: %d results, %+v, %v", run.WorkflowID(), len(seen), c, err)
			}
			s.history(b, run.WorkflowID())
		}
		if strings.Contains(s.log.text(), "panicked") {
			s.t.Error("something panicked")
		}
	}, testredis.AppendOnly("always"))
}

// cursorAtEnd reads all results of a workflow and returns where they end.
func (s *stack) cursorAtEnd(e umbel.Engine, id umbel.WorkflowID) umbel.Cursor {
	s.t.Helper()
	r := umbel.ResultsRequest{Namespace: ns, WorkflowID: id}
	for {
		page, err := e.Results(s.t.Context(), r)
		if err != nil {
			s.t.Fatal(err)
		}
		r.Cursor = page.Next
		if page.Done {
			return page.Next
		}
	}
}
