package outboxtest

import (
	"fmt"
	"strconv"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/outbox"
)

// sizes are those at which batches, chunks and bit fields end (case 39).
func sizes() []int {
	n := []int{0, 1, 999, 1000, 1001, 3999, 4000, 7999, 8000}
	if Full() {
		n = append(n, 65535, 65536, 100_001)
	}
	return n
}

// Each size is a case, to have a store of its own.
func sizeCases() []testCase {
	var all []testCase
	for _, n := range sizes() {
		all = append(all, testCase{fmt.Sprintf("N_%d_Case39", n), func(s *suite) { case39(s, n) }})
	}
	return all
}

// A fan-out of n rows is appended in one call, claimed in order to the last row, and read back.
func case39(s *suite, n int) {
	rows := make([]outbox.Row, n)
	for i := range rows {
		rows[i] = outbox.Row{WorkflowID: "w", Ordinal: int64(i), ActivityType: "act", Input: umbel.Payload{Data: fmt.Appendf(nil, "%d", i)}}
	}
	s.append(rows...)
	if n > 0 {
		s.unchanged("append of the last row again", func() { s.append(rows[n-1]) })
	}
	next := int64(0)
	for {
		page := s.claim(1000)
		if want := min(1000, n-int(next)); len(page) != want {
			s.Fatalf("claim after %d of %d rows returned %d", next, n, len(page))
		}
		if len(page) == 0 {
			break
		}
		for i, r := range page {
			if r.Ordinal != next+int64(i) || string(r.Input.Data) != strconv.FormatInt(r.Ordinal, 10) || r.Status != outbox.Claimed {
				s.Fatalf("row %d came as ordinal %d, input %q, %s", next+int64(i), r.Ordinal, r.Input.Data, r.Status)
			}
		}
		next += int64(len(page))
	}
	s.invariant()
	next = 0
	for r, err := range s.Store.Scan(s.Context(), "", "w") {
		s.ok(err)
		if r.Ordinal != next || string(r.Input.Data) != strconv.FormatInt(next, 10) || r.Status != outbox.Claimed {
			s.Fatalf("scan: row %d is ordinal %d, input %q, %s", next, r.Ordinal, r.Input.Data, r.Status)
		}
		next++
	}
	if next != int64(n) {
		s.Fatalf("scan has %d of %d rows", next, n)
	}
	if n > 0 {
		s.ok(s.Store.Complete(s.Context(), key("w", int64(n-1))))
		if got := s.get(key("w", int64(n-1))); got.Status != outbox.Done {
			s.Errorf("the last row is %s, want done", got.Status)
		}
	}
}
