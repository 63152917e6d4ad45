package outbox_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/outbox"
)

// Rows that an older version stored lack a run, a node and a route.
func TestRowOfAnOlderVersion(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_700_000_000_000)
	r := outbox.Row{WorkflowID: "w", Ordinal: 3, ActivityType: "a", VisibleAfter: at}.WithDefaults()
	if r.Namespace != umbel.DefaultNamespace || r.TaskQueue != umbel.DefaultTaskQueue {
		t.Errorf("route is %q/%q, want default/default", r.Namespace, r.TaskQueue)
	}
	if r.RunID != "" || r.Node != "" {
		t.Errorf("run %q, node %q, want none", r.RunID, r.Node)
	}
	if r.Status != outbox.Pending || r.Attempt != 0 || !r.ClaimedAt.IsZero() {
		t.Errorf("status %q, attempt %d, claimed at %v; want pending, 0, never", r.Status, r.Attempt, r.ClaimedAt)
	}
	if !r.VisibleAfter.Equal(at) {
		t.Errorf("visible after %v, want %v", r.VisibleAfter, at)
	}
}

func TestRowKeepsWhatIsSaid(t *testing.T) {
	t.Parallel()
	r := outbox.Row{
		Namespace: "n", WorkflowID: "w", RunID: "r", TaskQueue: "q", Node: "x", ActivityType: "a",
		Status: outbox.Claimed, Attempt: 2, VisibleAfter: time.UnixMilli(1).UTC(), ClaimedAt: time.UnixMilli(2).UTC(),
	}
	got := r.WithDefaults()
	if got.Namespace != "n" || got.RunID != "r" || got.TaskQueue != "q" || got.Node != "x" ||
		got.Status != outbox.Claimed || got.Attempt != 2 || got.VisibleAfter != r.VisibleAfter || got.ClaimedAt != r.ClaimedAt {
		t.Errorf("%+v became %+v", r, got)
	}
}

func TestDispatchKey(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		id      umbel.WorkflowID
		ordinal int64
		want    string
	}{
		{"w", 0, "w:0"},
		{"w", 1<<24 - 1, "w:16777215"},
		{"a:b", 7, "a:b:7"},
		{"a:7", 7, "a:7:7"},
		{":", 1, "::1"},
		{"::", 1, ":::1"},
		{"00123", 12, "00123:12"}, // case 50
		{"{}:*", 2, "{}:*:2"},
		{"dill 🌿", 3, "dill 🌿:3"},
	} {
		k := outbox.Row{WorkflowID: tt.id, Ordinal: tt.ordinal}.Key()
		if k.Namespace != umbel.DefaultNamespace {
			t.Errorf("%q: namespace %q, want the default one", tt.want, k.Namespace)
		}
		if got := k.Dispatch(); got != tt.want {
			t.Errorf("dispatch key of %q, %d is %q, want %q", tt.id, tt.ordinal, got, tt.want)
		}
		back, err := outbox.ParseKey(k.Namespace, tt.want)
		if err != nil || back != k {
			t.Errorf("ParseKey(%q) = %+v, %v, want %+v", tt.want, back, err, k)
		}
	}
}

func TestParseKeyRefuses(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"", ":", "w", "w:", ":0", "w:-1", "w:+1", "w:01", "w:00", "w: 1", "w:1 ", "w:1.0", "w:0x1", "w:1e3", "w:x",
		"w:٣", "w:9223372036854775808", "w:1:", "0",
	} {
		k, err := outbox.ParseKey("n", s)
		if !errors.Is(err, umbel.ErrInvalid) {
			t.Errorf("ParseKey(%q) = %+v, %v, want %v", s, k, err, umbel.ErrInvalid)
		}
	}
}

func TestCeilMilli(t *testing.T) {
	t.Parallel()
	ms := time.UnixMilli(1_700_000_000_123).UTC()
	old := time.UnixMilli(-1_500).UTC() // before 1970: up is still up
	for _, tt := range []struct{ in, want time.Time }{
		{time.Time{}, time.Time{}},
		{ms, ms},
		{ms.Add(1), ms.Add(time.Millisecond)},
		{ms.Add(time.Microsecond), ms.Add(time.Millisecond)},
		{ms.Add(time.Millisecond - 1), ms.Add(time.Millisecond)},
		{ms.In(time.FixedZone("x", 3600)), ms},
		{old, old},
		{old.Add(1), old.Add(time.Millisecond)},
		{time.Unix(0, 0), time.Unix(0, 0).UTC()},
	} {
		if got := outbox.CeilMilli(tt.in); got != tt.want { // ==: also in UTC and without a monotonic reading
			t.Errorf("CeilMilli(%v) = %v, want %v", tt.in, got, tt.want)
		}
	}
	now := time.Now()
	got := outbox.CeilMilli(now)
	if got != got.Round(0) {
		t.Errorf("CeilMilli(%v) kept the monotonic reading", now)
	}
	if d := got.Sub(now); d < 0 || d >= time.Millisecond {
		t.Errorf("CeilMilli(%v) moved it by %v", now, d)
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_700_000_000_000)
	sorted := []outbox.Row{
		{VisibleAfter: at, Ordinal: 0, WorkflowID: "b"},
		{VisibleAfter: at, Ordinal: 9, WorkflowID: "a"},
		{VisibleAfter: at, Ordinal: 9, WorkflowID: "b"},
		{VisibleAfter: at, Ordinal: 10, WorkflowID: "a"}, // 9 before 10: by number, not by text (case 23)
		{VisibleAfter: at, Ordinal: 100, WorkflowID: "a"},
		{VisibleAfter: at.Add(time.Millisecond), Ordinal: 0, WorkflowID: "a"},
	}
	for i, a := range sorted {
		for j, b := range sorted {
			if got, want := sign(outbox.Compare(a, b)), sign(i-j); got != want {
				t.Errorf("Compare(%d, %d) = %d, want %d", i, j, got, want)
			}
		}
	}
	mixed := slices.Clone(sorted)
	slices.Reverse(mixed)
	slices.SortFunc(mixed, outbox.Compare)
	for i := range sorted {
		if outbox.Compare(mixed[i], sorted[i]) != 0 {
			t.Fatalf("row %d is %+v, want %+v", i, mixed[i], sorted[i])
		}
	}
}

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}
