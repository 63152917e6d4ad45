package outboxtest_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/umbelhq/umbel/outbox"
	"github.com/umbelhq/umbel/outbox/outboxtest"
)

// planted is a bug in a store that is right otherwise, and the case that must find it.
type planted struct {
	find  string // a case of the suite, or Property
	store func(*outboxtest.Model) outbox.Store
}

func plantedBugs() map[string]planted {
	return map[string]planted{
		"order by text":          {"ClaimOrder_Case23", func(m *outboxtest.Model) outbox.Store { return &byText{m} }},
		"ends need a claim":      {"EndInsideASpan_Case61", func(m *outboxtest.Model) outbox.Store { return &endsNeedAClaim{m} }},
		"nodes are ignored":      {"Scope_Promise4", func(m *outboxtest.Model) outbox.Store { return &ignoresNodes{m} }},
		"claims are shared":      {"ExclusiveClaim_Promise3", func(m *outboxtest.Model) outbox.Store { return &sharesClaims{Model: m} }},
		"instants rounded down":  {"NeverEarly_Promise5", func(m *outboxtest.Model) outbox.Store { return &roundsDown{m} }},
		"half an append":         {"AppendGap", func(m *outboxtest.Model) outbox.Store { return &halfAppends{m} }},
		"one stale row too few":  {"Property", func(m *outboxtest.Model) outbox.Store { return &offByOne{m} }},
		"separators are escaped": {"NamesWithSeparators_Promise17", func(m *outboxtest.Model) outbox.Store { return &mixesNames{m} }},
	}
}

type (
	byText         struct{ *outboxtest.Model }
	endsNeedAClaim struct{ *outboxtest.Model }
	ignoresNodes   struct{ *outboxtest.Model }
	sharesClaims   struct {
		*outboxtest.Model

		calls atomic.Int64
	}
	roundsDown  struct{ *outboxtest.Model }
	halfAppends struct{ *outboxtest.Model }
	offByOne    struct{ *outboxtest.Model }
	mixesNames  struct{ *outboxtest.Model }
)

func (b *byText) Claim(ctx context.Context, limit int) ([]outbox.Row, error) {
	rows, err := b.Model.Claim(ctx, limit)
	slices.SortFunc(rows, func(x, y outbox.Row) int { return cmp.Compare(x.Key().Dispatch(), y.Key().Dispatch()) })
	return rows, err
}

func (b *endsNeedAClaim) Complete(ctx context.Context, key outbox.Key) error {
	if r, err := b.Get(ctx, key); err == nil && r.Status == outbox.Pending {
		return nil
	}
	return b.Model.Complete(ctx, key)
}

func (b *ignoresNodes) ClaimScoped(ctx context.Context, scope outbox.Scope, limit int) ([]outbox.Row, error) {
	scope.Node = cmp.Or(scope.Node, "a")
	return b.Model.ClaimScoped(ctx, scope, limit)
}

func (b *sharesClaims) Claim(ctx context.Context, limit int) ([]outbox.Row, error) {
	rows, err := b.Model.Claim(ctx, limit)
	if len(rows) > 0 && b.calls.Add(1) == 20 {
		_ = b.Rearm(ctx, rows[:1])
	}
	return rows, err
}

func (b *roundsDown) Append(ctx context.Context, rows []outbox.Row) error {
	rows = slices.Clone(rows)
	for i := range rows {
		rows[i].VisibleAfter = rows[i].VisibleAfter.Truncate(time.Millisecond)
	}
	return b.Model.Append(ctx, rows)
}

func (b *halfAppends) Append(ctx context.Context, rows []outbox.Row) error {
	for _, r := range rows {
		if err := b.Model.Append(ctx, []outbox.Row{r}); err != nil {
			return err
		}
	}
	return nil
}

func (b *offByOne) RearmStale(ctx context.Context, olderThan time.Time, limit int, visible time.Time) ([]outbox.Row, error) {
	if limit < 4 { // the suite has no such limit
		limit = 1
	}
	return b.Model.RearmStale(ctx, olderThan, limit, visible)
}

// A key glued together with a separator, and the separator replaced in the parts: "a|b" meets "a/b".
func (b *mixesNames) ClaimScoped(ctx context.Context, scope outbox.Scope, limit int) ([]outbox.Row, error) {
	scope.TaskQueue = strings.ReplaceAll(scope.TaskQueue, "|", "/")
	return b.Model.ClaimScoped(ctx, scope, limit)
}

const plantedVar = "UMBEL_PLANTED"

// TestPlanted is no test of its own: TestTheSuiteCanFail runs it in a second process, where it fails.
func TestPlanted(t *testing.T) {
	bug, ok := plantedBugs()[os.Getenv(plantedVar)]
	if !ok {
		return
	}
	open := func(*testing.T) outboxtest.Backend {
		clock := outboxtest.NewClock()
		m := outboxtest.NewModel(clock.Now)
		return backendOf(bug.store(m), m, clock)
	}
	outboxtest.Run(t, open)
	t.Run("Property", func(t *testing.T) { outboxtest.Property(t, open) })
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
