package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// fullScale is what the benchmark measures unless the environment says otherwise.
var fullScale = scale{rounds: 5, rows: 20_000, paced: 1_000, started: 200_000}

// BenchmarkContest prints the table, and each median as a metric of its own.
func BenchmarkContest(b *testing.B) {
	s := scale{
		rounds:  given(b, "ROUNDS", fullScale.rounds),
		rows:    given(b, "ROWS", fullScale.rows),
		paced:   given(b, "PACED", fullScale.paced),
		started: given(b, "STARTED", fullScale.started),
	}
	for b.Loop() {
		f := contest(b, s)
		f.check(b, s)
		fmt.Print(f.table(s))      // b.Log cuts after ten lines
		b.ReportMetric(0, "ns/op") // says nothing here
		for _, name := range contestants {
			for _, metric := range metrics {
				unit := strings.ReplaceAll(metric, " ", "-")
				b.ReportMetric(median(f[name][metric]), name+"-"+unit)
				if name != bare {
					b.ReportMetric(median(f.ratios(name, metric)), name+"/floor-"+unit)
				}
			}
		}
	}
}

// given is a number from the environment.
func given(tb testing.TB, name string, preset int) int {
	tb.Helper()
	text := os.Getenv("UMBEL_BENCH_" + name)
	if text == "" {
		return preset
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		tb.Fatalf("UMBEL_BENCH_%s=%q must be a number from 1", name, text)
	}
	return n
}

// TestContest is the short form: no figure may be missing, or be one that cannot be. It says nothing of speed.
func TestContest(t *testing.T) {
	s := scale{rounds: 1, rows: 2_000, paced: 40, started: 5_000}
	f := contest(t, s)
	f.check(t, s)
	t.Log(f.table(s))
}
