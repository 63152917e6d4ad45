package outbox

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strconv"

	"github.com/umbelhq/umbel"
)

// Get implements [Store].
func (o *Redis) Get(ctx context.Context, k Key) (Row, error) {
	if err := k.validate(); err != nil {
		return Row{}, err
	}
	k.Namespace = cmp.Or(k.Namespace, umbel.DefaultNamespace)
	run, err := o.lookup(ctx, k)
	if err != nil {
		return Row{}, err
	}
	if run != nil {
		run, vs, err := o.rows(ctx, run, []int64{k.Ordinal}, spans{})
		if err != nil {
			return Row{}, err
		}
		if vs[0].status != "" {
			return o.whole(ctx, run, &vs[0])
		}
	}
	return Row{}, &umbel.Error{
		Code: umbel.CodeNotFound, Op: "get", WorkflowID: k.WorkflowID, Field: "ordinal",
		Value: strconv.FormatInt(k.Ordinal, 10), Reason: "is no row of the workflow's current run", NotApplied: true,
	}
}

// rows reads how rows stand and where, without the bytes of large inputs. The run that it returns has all routes of
// these rows, even if it has grown since it was read.
func (o *Redis) rows(ctx context.Context, run *Run, ordinals []int64, known spans) (*Run, []view, error) {
	vs, err := o.peek(ctx, run, ordinals...)
	if err != nil {
		return run, nil, err
	}
	if slices.ContainsFunc(vs, func(v view) bool { return v.route >= len(run.Routes) }) {
		if run, err = o.Reload(ctx, run); err != nil {
			return run, nil, err
		}
	}
	return run, vs, o.locate(ctx, run, vs, known)
}

// whole is the row of a view, with its input if that is a large one.
func (o *Redis) whole(ctx context.Context, run *Run, v *view) (Row, error) {
	r := v.row(run)
	if !v.in.large {
		return r, nil
	}
	var err error
	r.Input.Data, err = o.Large(ctx, run, v.ordinal)
	return r, err
}

// Scan implements [Store]. It reads a page of rows at a time, each as it stands at one moment.
func (o *Redis) Scan(ctx context.Context, namespace string, id umbel.WorkflowID) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		k := Key{Namespace: cmp.Or(namespace, umbel.DefaultNamespace), WorkflowID: id}
		if err := k.validate(); err != nil {
			yield(Row{}, err)
			return
		}
		run, err := o.lookup(ctx, k)
		if err != nil {
			yield(Row{}, err)
		}
		if err != nil || run == nil {
			return
		}
		known := spans{}
		for from := int64(0); from <= umbel.MaxOrdinal; from += peekRows {
			page := make([]int64, min(peekRows, umbel.MaxOrdinal+1-from))
			for i := range page {
				page[i] = from + int64(i)
			}
			var vs []view
			if run, vs, err = o.rows(ctx, run, page, known); err != nil {
				yield(Row{}, err)
				return
			}
			for i := range vs {
				if vs[i].status == "" {
					return
				}
				if r, err := o.whole(ctx, run, &vs[i]); !yield(r, err) || err != nil {
					return
				}
			}
		}
	}
}
