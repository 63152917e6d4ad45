package client_test

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
)

func newAdmin(t testing.TB, f *fake) *client.Admin {
	t.Helper()
	a, err := client.NewAdmin(f, client.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// lines are items as a person would give them.
func lines(ss ...string) iter.Seq2[umbel.Payload, error] {
	return func(yield func(umbel.Payload, error) bool) {
		for _, s := range ss {
			if !yield(umbel.Payload{ContentType: "text/plain", Data: []byte(s)}, nil) {
				return
			}
		}
	}
}

func noInfo(i umbel.RunInfo) bool { return i.WorkflowID == "" && i.RunID == "" && i.Status == "" }

func noResult(r umbel.Result[umbel.Payload]) bool { return r.Cursor == "" && r.Status == "" }

func TestNewAdminRefuses(t *testing.T) {
	if _, err := client.NewAdmin(nil, client.Config{}); !errors.Is(err, umbel.ErrInvalid) {
		t.Error(err)
	}
	if _, err := client.NewAdmin(&fake{}, client.Config{Namespace: "a\x00"}); !errors.Is(err, umbel.ErrInvalid) {
		t.Error(err)
	}
}

func TestAdminStart(t *testing.T) {
	f := &fake{handle: echo}
	run, err := newAdmin(t, f).Start(t.Context(), client.StartSpec{
		WorkflowID: "w", Activity: "sum", TaskQueue: "q", Node: "n",
		MaxAttempts: 3, Timeout: time.Minute, Delay: time.Second,
	}, lines("a", ""))
	if err != nil || run.WorkflowID() != "w" || run.ID() == "" || run.Attached() {
		t.Fatal(run, err)
	}
	got, err := run.Gather(t.Context())
	if err != nil || string(got[0].Data) != "a" || got[0].ContentType != "text/plain" || len(got[1].Data) != 0 {
		t.Error(got, err)
	}
	r := f.run("w")
	if row := r.rows[1]; row.Type != "sum" || row.TaskQueue != "q" || row.Node != "n" || row.Delay != time.Second {
		t.Errorf("%+v", row)
	}
	if ts := r.commit.Types; len(ts) != 1 || ts[0].Type != "sum" || ts[0].StartToClose != time.Minute ||
		ts[0].Retry.MaxAttempts != 3 || ts[0].Retry.Cap != umbel.DefaultRetry.Cap {
		t.Errorf("%+v", ts)
	}
}

func TestAdminStartDefaults(t *testing.T) {
	f := &fake{handle: echo}
	run, err := newAdmin(t, f).Start(t.Context(), client.StartSpec{}, lines("a"))
	if err != nil || run.WorkflowID() == "" {
		t.Fatal(run, err)
	}
	r := f.run(run.WorkflowID())
	if row := r.rows[0]; row.Type != client.DefaultActivity || row.TaskQueue != umbel.DefaultTaskQueue || row.Node != "" || row.Delay != 0 {
		t.Errorf("%+v", row)
	}
	if p := r.commit.Types[0]; p.Retry.MaxAttempts != umbel.DefaultRetry.MaxAttempts || p.StartToClose != 0 {
		t.Errorf("%+v", p)
	}
}

// A start by a tool and one by a program are the same if they say the same.
func TestAdminStartAttaches(t *testing.T) {
	f := &fake{handle: echo}
	a, spec := newAdmin(t, f), client.StartSpec{WorkflowID: "w", Activity: "raw"}
	in := func(yield func(umbel.Payload) bool) {
		yield(umbel.Payload{ContentType: "text/plain", Data: []byte("a")})
	}
	run, err := client.FanOut(t.Context(), newClient(t, f), raw, in, client.WorkflowID("w"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := a.Start(t.Context(), spec, lines("a"))
	if err != nil || !again.Attached() || again.ID() != run.ID() {
		t.Error(again, err)
	}
	if _, err := a.Start(t.Context(), spec, lines("b")); !errors.Is(err, umbel.ErrAlreadyExists) {
		t.Error(err)
	}
	spec.OnExisting = client.Reject
	if _, err := a.Start(t.Context(), spec, lines("a")); !errors.Is(err, umbel.ErrAlreadyExists) {
		t.Error(err)
	}
	spec.Activity, spec.OnExisting = "other", client.Existing // its results can be read all the same
	other, err := a.Start(t.Context(), spec, lines("b"))
	if err != nil || !other.Attached() {
		t.Fatal(other, err)
	}
	if got, err := other.Gather(t.Context()); err != nil || string(got[0].Data) != "a" {
		t.Error(got, err)
	}
}

func TestAdminStartRefuses(t *testing.T) {
	broken := func(yield func(umbel.Payload, error) bool) {
		_ = yield(umbel.Payload{}, nil) && yield(umbel.Payload{}, context.Canceled)
	}
	for name, c := range map[string]struct {
		spec  client.StartSpec
		items iter.Seq2[umbel.Payload, error]
		want  error
	}{
		"workflow ID":    {client.StartSpec{WorkflowID: "a\n"}, lines(), umbel.ErrInvalid},
		"activity":       {client.StartSpec{Activity: "a\n"}, lines("a"), umbel.ErrInvalid},
		"task queue":     {client.StartSpec{TaskQueue: strings.Repeat("q", 256)}, lines("a"), umbel.ErrInvalid},
		"node":           {client.StartSpec{Node: "\xff"}, lines("a"), umbel.ErrInvalid},
		"attempts":       {client.StartSpec{MaxAttempts: -1}, lines("a"), umbel.ErrInvalid},
		"attempts, many": {client.StartSpec{MaxAttempts: umbel.MaxAttempts + 1}, lines("a"), umbel.ErrInvalid},
		"timeout":        {client.StartSpec{Timeout: -1}, lines("a"), umbel.ErrInvalid},
		"delay":          {client.StartSpec{Delay: time.Microsecond}, lines("a"), umbel.ErrInvalid},
		"on-existing":    {client.StartSpec{OnExisting: 7}, lines("a"), umbel.ErrInvalid},
		"no items":       {client.StartSpec{}, nil, umbel.ErrInvalid},
		"items that end": {client.StartSpec{}, broken, context.Canceled},
	} {
		f := &fake{}
		if run, err := newAdmin(t, f).Start(t.Context(), c.spec, c.items); !errors.Is(err, c.want) || run != nil || f.writes() != 0 {
			t.Errorf("%s: %v, %d writes", name, err, f.writes())
		}
	}
}

func TestAdminShow(t *testing.T) {
	f := &fake{}
	run := open(t, f, 3)
	f.resolve("w", 1, "1", nil)
	a := newAdmin(t, f)
	for _, id := range []umbel.RunID{"", run.ID()} {
		info, err := a.Show(t.Context(), "w", id)
		want := umbel.Counts{Scheduled: 3, Pending: 2, Completed: 1}
		if err != nil || info.WorkflowID != "w" || info.RunID != run.ID() || info.Status != umbel.StatusRunning ||
			info.Counts != want || !slices.Equal(info.Types, []string{"double"}) {
			t.Errorf("%+v, %v", info, err)
		}
	}
}

// All calls name what is not there in the same way.
func TestAdminNotFound(t *testing.T) {
	f := &fake{}
	open(t, f, 1)
	a, ctx := newAdmin(t, f), t.Context()
	for _, c := range []struct {
		id   umbel.WorkflowID
		run  umbel.RunID
		want error
	}{{"none", "", umbel.ErrNotFound}, {"w", "none", umbel.ErrNotFound}, {"", "", umbel.ErrInvalid}, {"a\x00", "", umbel.ErrInvalid}} {
		_, show := a.Show(ctx, c.id, c.run)
		_, cancel := a.Cancel(ctx, c.id, c.run, "")
		_, watch := read(t, a.Watch(ctx, c.id, c.run), noInfo)
		_, results := read(t, a.Results(ctx, c.id, client.ResultsQuery{Run: c.run}), noResult)
		_, history := read(t, a.History(ctx, c.id, client.HistoryQuery{Run: c.run}), noEvent)
		for op, err := range map[string]error{"show": show, "cancel": cancel, "watch": watch, "results": results, "history": history} {
			if !errors.Is(err, c.want) {
				t.Errorf("%s of %q, run %q: %v", op, c.id, c.run, err)
			}
		}
	}
}

func TestAdminWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		run := open(t, f, 2)
		for o := range int64(2) {
			time.AfterFunc(time.Duration(o+1)*time.Minute, func() { f.resolve("w", o, "1", nil) })
		}
		got, err := read(t, newAdmin(t, f).Watch(t.Context(), "w", ""), noInfo)
		if err != nil || len(got) != 3 || got[1].Counts.Completed != 1 || got[2].Status != umbel.StatusCompleted || got[0].RunID != run.ID() {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestAdminResultsOfAnOpenRun(t *testing.T) {
	for _, page := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{page: page}
			open(t, f, 6)
			for _, o := range []int64{3, 0, 1} {
				f.resolve("w", o, "1", nil)
			}
			f.resolve("w", 4, "", errors.New("no"))
			a, began := newAdmin(t, f), time.Now()
			for _, c := range []struct {
				q    client.ResultsQuery
				want []int64
			}{
				{client.ResultsQuery{}, []int64{3, 0, 1, 4}},
				{client.ResultsQuery{Ordered: true, WithInputs: true}, []int64{0, 1}},
				{client.ResultsQuery{Status: umbel.StatusFailed}, []int64{4}},
				{client.ResultsQuery{Status: umbel.StatusCompleted}, []int64{3, 0, 1}},
				{client.ResultsQuery{Status: umbel.StatusCancelled}, nil},
				{client.ResultsQuery{Ordered: true, Status: umbel.StatusFailed}, nil},
				{client.ResultsQuery{Run: "none"}, nil},
			} {
				got, err := read(t, a.Results(t.Context(), "w", c.q), noResult)
				if c.q.Run == "none" && errors.Is(err, umbel.ErrNotFound) {
					err = nil
				}
				if err != nil || !slices.Equal(ordinals(got), c.want) || c.q.WithInputs && string(got[1].Input.Data) != "1" {
					t.Errorf("%+v: %v, %v", c.q, ordinals(got), err)
				}
			}
			if waited := time.Since(began); waited != 0 {
				t.Errorf("waited for %v", waited)
			}
			for _, o := range []int64{2, 5} {
				time.AfterFunc(time.Duration(o)*time.Minute, func() { f.resolve("w", o, "1", nil) })
			}
			got, err := read(t, a.Results(t.Context(), "w", client.ResultsQuery{Follow: true, Ordered: true}), noResult)
			if err != nil || !slices.Equal(ordinals(got), []int64{0, 1, 2, 3, 4, 5}) || time.Since(began) != 5*time.Minute {
				t.Errorf("followed: %v, %v after %v", ordinals(got), err, time.Since(began))
			}
		})
	}
}

// Reading what is there ends, however fast the run goes on.
func TestAdminResultsOfABusyRun(t *testing.T) {
	f := &fake{page: 1}
	open(t, f, 1_000)
	f.resolve("w", 0, "1", nil)
	next := int64(1)
	f.fault = func(op string, _ int) (error, error) {
		if op == "Results" {
			f.resolve("w", next, "1", nil)
			next++
		}
		return nil, nil
	}
	a := newAdmin(t, f)
	got, err := read(t, a.Results(t.Context(), "w", client.ResultsQuery{}), noResult)
	if err != nil || len(got) < 1 || len(got) > 3 {
		t.Error(ordinals(got), err)
	}
	rest, err := read(t, a.Results(t.Context(), "w", client.ResultsQuery{From: got[len(got)-1].Cursor}), noResult)
	if err != nil || len(rest) < 1 || len(rest) > 10 {
		t.Error(ordinals(rest), err)
	}
}

func TestAdminCancel(t *testing.T) {
	f := &fake{}
	run := open(t, f, 2_500)
	f.resolve("w", 0, "1", nil)
	a := newAdmin(t, f)
	if n, err := a.Cancel(t.Context(), "w", run.ID(), "why", 0, 1, 2); err != nil || n != 2 {
		t.Error(n, err)
	}
	many := make([]int64, 2_100)
	for i := range many {
		many[i] = int64(i)
	}
	if n, err := a.Cancel(t.Context(), "w", "", "why", many...); err != nil || n != 2_097 {
		t.Error(n, err)
	}
	for _, want := range []int64{400, 0} {
		if n, err := a.Cancel(t.Context(), "w", "", "why"); err != nil || n != want {
			t.Error(n, err)
		}
	}
	if n, err := a.Cancel(t.Context(), "w", "", "", -1); !errors.Is(err, umbel.ErrInvalid) || n != 0 {
		t.Error(n, err)
	}
}

func TestAdminCancelFailsHalfway(t *testing.T) {
	f := &fake{fault: func(op string, n int) (error, error) {
		if op == "Cancel" && n == 2 {
			return &umbel.Error{Code: umbel.CodeInternal}, nil
		}
		return nil, nil
	}}
	open(t, f, 2_000)
	many := make([]int64, 2_000)
	for i := range many {
		many[i] = int64(i)
	}
	if n, err := newAdmin(t, f).Cancel(t.Context(), "w", "", "", many...); !errors.Is(err, umbel.ErrInternal) || n != umbel.MaxReportItems {
		t.Error(n, err)
	}
}

func TestAdminOutlivesAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		open(t, f, 1)
		f.resolve("w", 0, "1", nil)
		a, ctx := newAdmin(t, f), t.Context()
		for op, do := range map[string]func() error{
			"start":   func() error { _, err := a.Start(ctx, client.StartSpec{}, lines("a")); return err },
			"list":    func() error { _, err := read(t, a.List(ctx, client.ListFilter{}), noInfo); return err },
			"show":    func() error { _, err := a.Show(ctx, "w", ""); return err },
			"watch":   func() error { _, err := read(t, a.Watch(ctx, "w", ""), noInfo); return err },
			"history": func() error { _, err := read(t, a.History(ctx, "w", client.HistoryQuery{}), noEvent); return err },
			"results": func() error { _, err := read(t, a.Results(ctx, "w", client.ResultsQuery{}), noResult); return err },
			"cancel":  func() error { _, err := a.Cancel(ctx, "w", "", ""); return err },
		} {
			f.fault = away(10*time.Second, unavailable)
			if err := do(); err != nil {
				t.Errorf("%s: %v", op, err)
			}
			f.fault = away(time.Hour, unavailable)
			if err := do(); !errors.Is(err, umbel.ErrUnavailable) {
				t.Errorf("%s, for an hour: %v", op, err)
			}
			f.fault = nil
		}
	})
}
