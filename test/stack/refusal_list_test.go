package stack

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/umbelhq/umbel"
)

// listRefusals are those of List.
func listRefusals() []refusal {
	type ctx = context.Context
	list := func(c ctx, e umbel.Engine, change func(*umbel.ListRequest)) error {
		r := umbel.ListRequest{Namespace: ns}
		change(&r)
		_, err := e.List(c, r)
		return err
	}
	table := slices.Concat(
		names("List", "namespace", false, func(c ctx, e umbel.Engine, v string) error {
			return list(c, e, func(r *umbel.ListRequest) { r.Namespace = v })
		}),
		names("List", "activity type", true, func(c ctx, e umbel.Engine, v string) error {
			return list(c, e, func(r *umbel.ListRequest) { r.Type = v })
		}),
		names("List", "prefix", true, func(c ctx, e umbel.Engine, v string) error {
			return list(c, e, func(r *umbel.ListRequest) { r.Prefix = v })
		}),
	)
	for _, n := range []int{-1, umbel.MaxListItems + 1, math.MaxInt, math.MinInt} {
		table = append(table, refusal{"List", "limit", "limit", "must be from 1 to 1000", func(c ctx, e umbel.Engine) error {
			return list(c, e, func(r *umbel.ListRequest) { r.Limit = n })
		}})
	}
	for _, st := range []umbel.Status{"open", "Running", "running ", "pending", "staging", "\x00", "r"} {
		table = append(table, refusal{"List", "status " + string(st), "status", "must be running, completed, failed or cancelled", func(c ctx, e umbel.Engine) error {
			return list(c, e, func(r *umbel.ListRequest) { r.Status = st })
		}})
	}
	for _, cur := range []umbel.Cursor{
		"x", "\x00\xff", umbel.Cursor(strings.Repeat("a", 10_000)), "....", "1.1.1.run.00000000", "1.-1.0.run.00000000", "1.1.99999.run.0",
		"2.1.1.run.00000000", "1.1.1..00000000", "run.1.00000000",
	} {
		table = append(table, refusal{"List", "cursor " + string(cur), "cursor", "this list", func(c ctx, e umbel.Engine) error {
			return list(c, e, func(r *umbel.ListRequest) { r.Cursor = cur })
		}})
	}
	return table
}
