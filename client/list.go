package client

import (
	"cmp"
	"context"
	"iter"
	"math"
	"strconv"

	"github.com/umbelhq/umbel"
)

// ListFilter says which runs [Admin.List] yields. The zero ListFilter asks for all of the namespace.
type ListFilter struct {
	// Status is that of the runs. Empty: any.
	Status umbel.Status
	// Activity asks for runs that have rows of this activity type. Empty: any.
	Activity string
	// Prefix asks for workflow IDs that begin with it. Empty: any.
	Prefix string
	// Limit bounds how many are yielded. 0: all.
	Limit int
}

// List yields the runs of the namespace, the latest started first, page by page. Runs that are started meanwhile
// need not be among them.
func (a *Admin) List(ctx context.Context, f ListFilter) iter.Seq2[umbel.RunInfo, error] {
	return func(yield func(umbel.RunInfo, error) bool) {
		if f.Limit < 0 {
			e := umbel.Invalid("limit", strconv.Itoa(f.Limit), "must be 1 or more, or 0 for all")
			e.Op = "list"
			yield(umbel.RunInfo{}, e)
			return
		}
		req := umbel.ListRequest{Namespace: a.c.namespace, Status: f.Status, Type: f.Activity, Prefix: f.Prefix}
		for left := cmp.Or(f.Limit, math.MaxInt); ; {
			req.Limit = min(left, umbel.MaxListItems)
			page, err := call(ctx, a.c, "list", "", func(ctx context.Context) (umbel.ListReply, error) {
				return a.c.engine.List(ctx, req)
			})
			if err != nil {
				yield(umbel.RunInfo{}, err)
				return
			}
			for _, info := range page.Runs {
				if !yield(info, nil) {
					return
				}
				if left--; left == 0 {
					return
				}
			}
			if page.Done {
				return
			}
			if page.Next == req.Cursor {
				yield(umbel.RunInfo{}, &umbel.Error{
					Code: umbel.CodeInternal, Op: "list", Reason: "the server returned a page that is not the last and does not advance",
				})
				return
			}
			req.Cursor = page.Next
		}
	}
}
