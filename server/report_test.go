package server_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/testredis"
)

// Failures count as results do: a report of nothing but stacks is as large for Redis as one of results.
func TestReportCountsFailures(t *testing.T) {
	t.Parallel()
	s := serve(t, testredis.Mini(t))
	stack := strings.Repeat("s", umbel.MaxErrorStackBytes)
	item := umbel.ReportItem{Token: "none", Outcome: umbel.OutcomeFailed, Failure: &umbel.Failure{
		Stack: stack, Cause: &umbel.Failure{Stack: stack},
	}}
	r := umbel.ReportRequest{
		Namespace: umbel.DefaultNamespace, Worker: "w",
		Items: slices.Repeat([]umbel.ReportItem{item}, umbel.MaxReportBytes/(2*umbel.MaxErrorStackBytes)),
	}
	if got, err := s.Report(t.Context(), r); err != nil || got.Verdicts[0].Code != umbel.Refused {
		t.Fatalf("at the limit: %+v, %v", got, err)
	}
	item.Failure = &umbel.Failure{Type: "t"}
	r.Items = append(r.Items, item)
	if _, err := s.Report(t.Context(), r); !errors.Is(err, umbel.ErrLimit) {
		t.Fatalf("a byte above it: %v", err)
	}
}
