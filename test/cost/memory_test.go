package cost

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/umbelhq/umbel/internal/testredis"
	"github.com/umbelhq/umbel/outbox/outboxtest"
)

// full asks for the whole of a measurement; without it a test takes a smaller one of the same kind.
func full() bool { return outboxtest.Full() }

type figures struct {
	RunPerSecond   float64 `json:"run_rows_per_second"`
	StartPerSecond float64 `json:"start_rows_per_second"`
	PendingBytes   float64 `json:"bytes_a_row_after_commit"`
	ClosedBytes    float64 `json:"bytes_a_row_after_close_and_ordered_read"`
	PeakMB         float64 `json:"peak_rss_mb"`
}

// load builds and runs the program of that name, which is never built with the race detector: its memory counts.
func load(t *testing.T, r *testredis.Redis, n int) figures {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "load")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./load").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), bin, "-redis", r.URL, "-n", strconv.Itoa(n))
	cmd.Env = append(os.Environ(), "GOMEMLIMIT=off", "GOGC=100")
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", out)
	var f figures
	if err := json.Unmarshal(out, &f); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestMemoryOfAMillionRows holds the one process of server, worker and client to 400 MB at its peak, a pending row of
// 100 bytes to 150 in Redis, and the same row with a result of 20 bytes to 200 after close and an ordered read. Without
// UMBEL_TEST_FULL it takes 200,000 rows, and holds the process to the same: its memory must not grow with them.
func TestMemoryOfAMillionRows(t *testing.T) {
	n := 200_000
	if full() {
		n = 1_000_000
	}
	f := load(t, testredis.Real(t, testredis.AppendOnly("everysec")), n)
	for _, c := range []struct {
		what      string
		got, most float64
	}{
		{"MB of the process at its peak", f.PeakMB, 400},
		{"bytes in Redis of a row after commit", f.PendingBytes, 150},
		{"bytes in Redis of a row after close and an ordered read", f.ClosedBytes, 200},
	} {
		if c.got <= 0 || c.got > c.most {
			t.Errorf("%s: %.1f, want at most %.0f", c.what, c.got, c.most)
		}
	}
}
