package stack

import (
	"strconv"
	"testing"

	"github.com/umbelhq/umbel"
)

// A poll that does not wait is handed what was due when it was sent, though no wake-up has come yet: also what another
// server has committed.
func TestPollWithoutWaitSeesWhatIsDue(t *testing.T) {
	onEach(t, func(s *stack) {
		a, b := s.open(), s.open()
		s.claim0(a)
		s.claim0(b)
		for i := range 50 {
			s.start(a, umbel.WorkflowID("w"+strconv.Itoa(i)), rows(3))
			if held := s.poll(b, 3); len(held) != 3 {
				s.t.Fatalf("round %d: %d rows", i, len(held))
			}
		}
	})
}
