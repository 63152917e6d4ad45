package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
)

// started starts runs a-0, b-1, a-2, …: those of a are closed, the others open, and one is of another namespace.
func startedRuns(t *testing.T, f *fake, n int) *client.Admin {
	t.Helper()
	a := newAdmin(t, f)
	elsewhere, err := client.NewAdmin(f, client.Config{Namespace: "elsewhere"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := elsewhere.Start(t.Context(), client.StartSpec{WorkflowID: "a-0"}, lines("x")); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		spec := client.StartSpec{WorkflowID: umbel.WorkflowID(fmt.Sprintf("%c-%d", "ab"[i%2], i)), Activity: "even"}
		items := lines()
		if i%2 == 1 {
			spec.Activity, items = "odd", lines("x")
		}
		if _, err := a.Start(t.Context(), spec, items); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

func workflows(infos []umbel.RunInfo) []umbel.WorkflowID {
	var ids []umbel.WorkflowID
	for _, i := range infos {
		ids = append(ids, i.WorkflowID)
	}
	return ids
}

func TestList(t *testing.T) {
	for _, page := range []int{0, 1, 2} { // with the small ones, pages are empty and advance
		a := startedRuns(t, &fake{page: page}, 5)
		for _, c := range []struct {
			f    client.ListFilter
			want []umbel.WorkflowID
		}{
			{client.ListFilter{}, []umbel.WorkflowID{"a-4", "b-3", "a-2", "b-1", "a-0"}},
			{client.ListFilter{Status: umbel.StatusRunning}, []umbel.WorkflowID{"b-3", "b-1"}},
			{client.ListFilter{Activity: "odd"}, []umbel.WorkflowID{"b-3", "b-1"}},
			{client.ListFilter{Prefix: "a-"}, []umbel.WorkflowID{"a-4", "a-2", "a-0"}},
			{client.ListFilter{Prefix: "a-", Limit: 2}, []umbel.WorkflowID{"a-4", "a-2"}},
			{client.ListFilter{Limit: 1}, []umbel.WorkflowID{"a-4"}},
			{client.ListFilter{Limit: 1_000_000}, []umbel.WorkflowID{"a-4", "b-3", "a-2", "b-1", "a-0"}},
			{client.ListFilter{Prefix: "c"}, nil},
		} {
			seq := a.List(t.Context(), c.f)
			for range 2 {
				got, err := read(t, seq, noInfo)
				if err != nil || !slices.Equal(workflows(got), c.want) {
					t.Errorf("%+v, pages of %d: %v, %v", c.f, page, workflows(got), err)
				}
			}
		}
	}
}

func TestListBreak(t *testing.T) {
	f := &fake{page: 2}
	for range startedRuns(t, f, 5).List(t.Context(), client.ListFilter{}) {
		break
	}
	if n := f.count("List"); n != 1 {
		t.Errorf("%d calls", n)
	}
}

func TestListErrors(t *testing.T) {
	f := &fake{page: 2, fault: func(op string, n int) (error, error) {
		if op == "List" && n == 2 {
			return &umbel.Error{Code: umbel.CodeInternal}, nil
		}
		return nil, nil
	}}
	a := startedRuns(t, f, 5)
	if got, err := read(t, a.List(t.Context(), client.ListFilter{}), noInfo); !errors.Is(err, umbel.ErrInternal) || len(got) != 2 {
		t.Error(workflows(got), err)
	}
	if got, err := read(t, a.List(t.Context(), client.ListFilter{Limit: -1}), noInfo); !errors.Is(err, umbel.ErrInvalid) || got != nil {
		t.Error(workflows(got), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := read(t, a.List(ctx, client.ListFilter{}), noInfo); !errors.Is(err, context.Canceled) || !errors.Is(err, umbel.ErrUnavailable) {
		t.Error(err)
	}
}

// stuck returns the same page for ever.
type stuck struct{ *fake }

func (stuck) List(context.Context, umbel.ListRequest) (umbel.ListReply, error) {
	return umbel.ListReply{Next: "1"}, nil
}

func TestListThatDoesNotAdvance(t *testing.T) {
	a, err := client.NewAdmin(stuck{&fake{}}, client.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := read(t, a.List(t.Context(), client.ListFilter{}), noInfo); !errors.Is(err, umbel.ErrInternal) {
		t.Error(err)
	}
}
