package check

import (
	"slices"
	"testing"
	"time"
)

// Shrinking plays a smaller schedule so often before it takes it for right, and plays at most so many in all.
const (
	tries = 3
	most  = 150
)

// played returns what says how a schedule fails, playing it.
func played(t *testing.T, scripts map[string]string) func(schedule) []string {
	t.Helper()
	plays := 0
	return func(s schedule) []string {
		for range tries {
			if plays++; plays > most {
				return nil
			}
			if problems := play(t, s, scripts, &tally{}); len(problems) > 0 {
				return problems
			}
		}
		return nil
	}
}

// shrink leaves out runs, faults and rows of a schedule while it still fails, and returns what is left and how it fails.
func shrink(s schedule, fails func(schedule) []string) (schedule, []string) {
	problems := []string{"nothing could be left out"}
	smaller := false
	take := func(next schedule) {
		if p := fails(next); p != nil {
			s, problems, smaller = next, p, true
		}
	}
	for again := true; again; again = smaller {
		smaller = false
		for i := range slices.Backward(s.Runs) {
			if len(s.Runs) > 1 {
				next := s
				next.Runs = slices.Delete(slices.Clone(s.Runs), i, i+1)
				take(next)
			}
		}
		for i := range slices.Backward(s.Faults) {
			next := s
			next.Faults = slices.Delete(slices.Clone(s.Faults), i, i+1)
			take(next)
		}
		for i := range s.Runs {
			for n := len(s.Runs[i].Rows) / 2; n > 0; n /= 2 {
				if rows := len(s.Runs[i].Rows) - n; rows > 0 {
					next := s
					next.Runs = slices.Clone(s.Runs)
					next.Runs[i] = s.Runs[i].first(rows)
					take(next)
				}
			}
		}
	}
	return s, problems
}

// first is p without the rows behind the first n: ordinals have no gaps.
func (p runPlan) first(n int) runPlan {
	p.Rows = p.Rows[:n]
	some := len(p.CancelRows) > 0
	p.CancelRows = slices.DeleteFunc(slices.Clone(p.CancelRows), func(o int64) bool { return o >= int64(n) })
	if some && len(p.CancelRows) == 0 {
		p.CancelAt = 0 // it would cancel the run
	}
	return p
}

// What has nothing to do with a failure is left out.
func TestShrink(t *testing.T) {
	t.Parallel()
	s := draw(1)
	s.Faults = append(s.Faults, fault{Kind: killServer, At: time.Second, Target: 77})
	kept, problems := shrink(s, func(s schedule) []string {
		rows := slices.ContainsFunc(s.Runs, func(p runPlan) bool { return p.ID == "w1" && len(p.Rows) > 4 })
		if rows && slices.ContainsFunc(s.Faults, func(f fault) bool { return f.Target == 77 }) {
			return []string{"planted"}
		}
		return nil
	})
	if len(kept.Runs) != 1 || len(kept.Runs[0].Rows) != 5 || len(kept.Faults) != 1 || len(problems) != 1 {
		t.Errorf("%v: it shrinks to\n%v", problems, kept)
	}
}

// The same seed draws the same schedule, and every schedule has what the check promises.
func TestDraw(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		s := draw(seed)
		if s.String() != draw(seed).String() {
			t.Fatalf("seed %d draws two schedules", seed)
		}
		rows := 0
		for _, p := range s.Runs {
			rows += len(p.Rows)
		}
		if rows < minRows || len(s.Runs) < 3 || len(s.Faults) < 5 || servers < 2 || len(crew) < 3 {
			t.Errorf("seed %d: %s", seed, s.size())
		}
	}
}
