package check

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
)

// usual is how many schedules every run of the tests plays, and enough is how many show even what is rare. make check-histories
// plays 10,000.
const (
	usual  = 20
	enough = 500
)

// inBubble runs f in a bubble of its own.
func inBubble(t *testing.T, f func(*testing.T) []string) (out []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { out = f(t) })
	return out
}

func number(t *testing.T, name string, usual uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// Schedules of runs and faults keep the promises. UMBEL_CHECK_SEED plays those from a seed on, UMBEL_CHECK_SCHEDULES says
// how many, UMBEL_CHECK_REPLAY names the file of one that failed.
func TestSchedules(t *testing.T) {
	scripts := scriptNames(t)
	if name := os.Getenv("UMBEL_CHECK_REPLAY"); name != "" {
		replay(t, name, scripts)
		return
	}
	seed := number(t, "UMBEL_CHECK_SEED", rand.Uint64N(1<<40))
	n := number(t, "UMBEL_CHECK_SCHEDULES", usual)
	t.Logf("UMBEL_CHECK_SEED=%d", seed)
	var seen tally
	// what chance has left out is given some more, so that the test fails only if it has gone
	more := func(i uint64) bool { return i < n || n >= usual && i < 5*n && len(seen.missing(expected(n))) > 0 }
	i := uint64(0)
	for ; more(i); i++ {
		s := draw(seed + i)
		if problems := play(t, s, scripts, &seen); len(problems) > 0 {
			t.Errorf("schedule %d of %d (UMBEL_CHECK_SEED=%d, %s) breaks what is promised:\n%s", i+1, n, s.Seed, s.size(), list(problems))
			if number(t, "UMBEL_CHECK_SHRINK", 1) == 1 {
				small, problems := shrink(s, played(t, scripts))
				t.Errorf("it shrinks to %s:\n%s", small.size(), list(problems))
				s = small
			}
			save(t, s)
			return
		}
	}
	t.Logf("%d schedules:\n%s", i, seen.String())
	if n >= usual {
		for _, never := range seen.missing(expected(n)) {
			t.Errorf("never seen in %d schedules: %s", i, never)
		}
	}
}

func replay(t *testing.T, name string, scripts map[string]string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var s schedule
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	for range number(t, "UMBEL_CHECK_SCHEDULES", 10) {
		if problems := play(t, s, scripts, &tally{}); len(problems) > 0 {
			t.Fatal(list(problems))
		}
	}
}

// save prints a schedule, and keeps it with what the test leaves behind.
func save(t *testing.T, s schedule) {
	t.Helper()
	text, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.ArtifactDir(), "schedule.json")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Error(err)
	}
	t.Logf("kept in %s, to be played again with UMBEL_CHECK_REPLAY\n%s", name, s)
}

// list is the first of many problems.
func list(problems []string) string {
	const most = 12
	return strings.Join(problems[:min(len(problems), most)], "\n")
}
