package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
)

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}

// ratios are the contestant's figures over the floor's of the same round.
func (f figures) ratios(contestant, metric string) []float64 {
	var all []float64
	for i, v := range f[contestant][metric] {
		all = append(all, v/f[bare][metric][i])
	}
	return all
}

// table is all of f, for people.
func (f figures) table(s scale) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%d rounds; %d rows a run, %d rows at 200/s, %d rows started; medians (lowest to highest)\n\n",
		s.rounds, s.rows, s.paced, s.started)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "\t")
	for _, name := range contestants {
		fmt.Fprintf(w, "%s\t", name)
		if name != bare {
			fmt.Fprint(w, "/ floor\t")
		}
	}
	fmt.Fprintln(w)
	for _, metric := range metrics {
		fmt.Fprintf(w, "%s\t", metric)
		for _, name := range contestants {
			fmt.Fprintf(w, "%s\t", spread(f[name][metric]))
			if name != bare {
				fmt.Fprintf(w, "%s\t", spread(f.ratios(name, metric)))
			}
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	return b.String()
}

// spread writes three significant digits: the machine gives no more.
func spread(v []float64) string {
	if len(v) == 1 {
		return digits(v[0])
	}
	return fmt.Sprintf("%s (%s to %s)", digits(median(v)), digits(slices.Min(v)), digits(slices.Max(v)))
}

func digits(v float64) string {
	if v >= 1_000 {
		unit := math.Pow(10, math.Floor(math.Log10(v))-2)
		return fmt.Sprintf("%.0f", math.Round(v/unit)*unit)
	}
	return fmt.Sprintf("%.3g", v)
}

// limits are what no machine reaches, in either direction.
var limits = map[string][2]float64{
	rowsPerSecond:    {1, 1e7},
	p50:              {1e-3, 60_000},
	p99:              {1e-3, 60_000},
	startedPerSecond: {1, 1e8},
	bytesPerRow:      {20, 10_000},
	redisPerRow:      {0.1, 1e6},
	cpuPerRow:        {0.1, 1e6},
}

// check fails the test if a figure is missing or cannot be.
func (f figures) check(tb testing.TB, s scale) {
	tb.Helper()
	for _, name := range contestants {
		for _, metric := range metrics {
			values := f[name][metric]
			if len(values) != s.rounds {
				tb.Errorf("%s: %d values of %s in %d rounds", name, len(values), metric, s.rounds)
			}
			for _, v := range values {
				if limit := limits[metric]; !(v >= limit[0] && v <= limit[1]) { // NaN is neither
					tb.Errorf("%s: %s is %v, which cannot be", name, metric, v)
				}
			}
		}
		for i := range min(len(f[name][p50]), len(f[name][p99])) {
			if f[name][p50][i] > f[name][p99][i] {
				tb.Errorf("%s: p50 is above p99 in round %d", name, i)
			}
		}
	}
}
