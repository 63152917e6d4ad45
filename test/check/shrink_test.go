package check

import (
	"slices"
	"testing"
)

// Shrinking plays a smaller schedule so often before it takes it for right, and plays at most so many in all.
const (
	tries = 3
	most  = 150
)

// shrink returns a smaller schedule that fails too, and how.
func shrink(t *testing.T, s schedule, scripts map[string]string) (schedule, []string) {
	t.Helper()
	played := 0
	fails := func(s schedule) []string {
		for range tries {
			if played++; played > most {
				return nil
			}
			if problems := play(t, s, scripts, &tally{}); len(problems) > 0 {
				return problems
			}
		}
		return nil
	}
	problems := []string{"it fails once in a while"}
	take := func(smaller schedule) bool {
		p := fails(smaller)
		if p != nil {
			s, problems = smaller, p
		}
		return p != nil
	}
	for again := true; again; {
		again = false
		for i := len(s.Runs) - 1; i >= 0 && len(s.Runs) > 1; i-- {
			smaller := s
			smaller.Runs = slices.Delete(slices.Clone(s.Runs), i, i+1)
			again = take(smaller) || again
		}
		for i := len(s.Faults) - 1; i >= 0; i-- {
			smaller := s
			smaller.Faults = slices.Delete(slices.Clone(s.Faults), i, i+1)
			again = take(smaller) || again
		}
		for i := range s.Runs {
			for n := len(s.Runs[i].Rows) / 2; n > 0; n /= 2 { // ordinals are contiguous: the last rows go
				rows := len(s.Runs[i].Rows) - n
				if rows < 1 {
					continue
				}
				smaller := s
				smaller.Runs = slices.Clone(s.Runs)
				p := s.Runs[i]
				p.Rows = p.Rows[:rows]
				p.CancelRows = slices.DeleteFunc(slices.Clone(p.CancelRows), func(o int64) bool { return o >= int64(rows) })
				if len(p.CancelRows) == 0 && len(s.Runs[i].CancelRows) > 0 {
					p.CancelAt = 0
				}
				smaller.Runs[i] = p
				again = take(smaller) || again
			}
		}
	}
	return s, problems
}
