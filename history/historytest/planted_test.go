package historytest_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/history"
	"github.com/umbelhq/umbel/history/historytest"
	"github.com/umbelhq/umbel/outbox"
	"github.com/umbelhq/umbel/outbox/outboxtest"
)

// planted is a bug in a store that is right otherwise, and the case that must find it.
type planted struct {
	find  string // a case of the suite, or Property
	store func(*historytest.Model) history.Store
}

func plantedBugs() map[string]planted {
	return map[string]planted{
		"rows before the check":      {"AppendConflict_Promise8", func(m *historytest.Model) history.Store { return &rowsFirst{m} }},
		"duplicates by row":          {"OutboxEndIsNoTerminal", func(m *historytest.Model) history.Store { return &dedupByRow{m} }},
		"run not compared":           {"RunFence_Promise9", func(m *historytest.Model) history.Store { return &anyRun{m} }},
		"pages end with batches":     {"ReadPages", func(m *historytest.Model) history.Store { return &batchPages{m} }},
		"failures lose their causes": {"Failures", func(m *historytest.Model) history.Store { return &noCauses{m} }},
		"a dropped failure counts":   {"Property", func(m *historytest.Model) history.Store { return &headMoves{m} }},
	}
}

type (
	rowsFirst  struct{ *historytest.Model }
	dedupByRow struct{ *historytest.Model }
	anyRun     struct{ *historytest.Model }
	batchPages struct{ *historytest.Model }
	noCauses   struct{ *historytest.Model }
	headMoves  struct{ *historytest.Model }
)

func (b *rowsFirst) Dispatch(ctx context.Context, wf history.Workflow, at history.Position, items []history.Item) (int64, error) {
	head, err := b.Model.Dispatch(ctx, wf, at, items)
	if umbel.CodeOf(err) == umbel.CodeConflict {
		_ = b.Outbox().Append(ctx, []outbox.Row{{Namespace: wf.Namespace, WorkflowID: wf.ID, RunID: wf.RunID, ActivityType: "act"}})
	}
	return head, err
}

func (b *dedupByRow) Complete(ctx context.Context, wf history.Workflow, at history.Position, c history.Completion) (history.Outcome, int64, error) {
	r, err := b.Outbox().Get(ctx, outbox.Key{Namespace: wf.Namespace, WorkflowID: wf.ID, Ordinal: c.Ordinal})
	if err == nil && r.Status.Terminal() {
		return history.Dropped, at.Head, nil
	}
	return b.Model.Complete(ctx, wf, at, c)
}

func (b *anyRun) Complete(ctx context.Context, wf history.Workflow, at history.Position, c history.Completion) (history.Outcome, int64, error) {
	c.RunID = ""
	return b.Model.Complete(ctx, wf, at, c)
}

func (b *batchPages) Read(ctx context.Context, wf history.Workflow, from int64, limit int) ([]umbel.Event, error) {
	if limit == 7 {
		limit = 8
	}
	return b.Model.Read(ctx, wf, from, limit)
}

func (b *noCauses) Complete(ctx context.Context, wf history.Workflow, at history.Position, c history.Completion) (history.Outcome, int64, error) {
	if c.Failure != nil {
		f := *c.Failure
		f.Cause, c.Failure = nil, &f
	}
	return b.Model.Complete(ctx, wf, at, c)
}

// The head is counted on for an outcome that was dropped, on a path that few take.
func (b *headMoves) Complete(ctx context.Context, wf history.Workflow, at history.Position, c history.Completion) (history.Outcome, int64, error) {
	outcome, head, err := b.Model.Complete(ctx, wf, at, c)
	if outcome == history.Dropped && c.Failure != nil && c.RunID == "run2" {
		head++
	}
	return outcome, head, err
}

const plantedVar = "UMBEL_PLANTED"

// TestPlanted is no test of its own: TestTheSuiteCanFail runs it in a second process, where it fails.
func TestPlanted(t *testing.T) {
	bug, ok := plantedBugs()[os.Getenv(plantedVar)]
	if !ok {
		return
	}
	open := func(*testing.T) historytest.Backend {
		clock := outboxtest.NewClock()
		m := historytest.NewModel(clock.Now)
		return backendOf(bug.store(m), m, clock)
	}
	historytest.Run(t, open)
	t.Run("Property", func(t *testing.T) { historytest.Property(t, open) })
}

// A suite that cannot fail proves nothing.
func TestTheSuiteCanFail(t *testing.T) {
	t.Parallel()
	for name, bug := range plantedBugs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0],
				"-test.run=^TestPlanted$/^"+bug.find+"$", fmt.Sprintf("-test.short=%t", bug.find != "Property"), "-test.v", "-rapid.nofailfile", "-rapid.shrinktime=100ms")
			cmd.Env = append(os.Environ(), plantedVar+"="+name)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "--- FAIL: TestPlanted/"+bug.find) {
				t.Errorf("%s did not find it: %v\n%s", bug.find, err, out)
			}
			if strings.Contains(string(out), "\npanic: ") {
				t.Errorf("%s panicked instead of failing:\n%s", bug.find, out)
			}
		})
	}
}
