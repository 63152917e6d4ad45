package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
)

// open starts n rows of double under workflow "w" that the test resolves.
func open(t *testing.T, f *fake, n int) *client.Run[int] {
	t.Helper()
	run, err := client.FanOut(t.Context(), newClient(t, f), double, upTo(n), client.WorkflowID("w"))
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// collect reads a sequence to its end and checks that an error is the last thing in it.
func collect[Out any](t *testing.T, run *client.Run[Out], opts ...client.ResultOption) (got []umbel.Result[Out], last error) {
	t.Helper()
	for r, err := range run.Results(t.Context(), opts...) {
		if last != nil {
			t.Error("something followed the error")
		}
		if err != nil {
			last = err
			if r.Cursor != "" || r.Ordinal != 0 || r.Status != "" {
				t.Errorf("with the error came %+v", r)
			}
			continue
		}
		got = append(got, r)
	}
	return got, last
}

func ordinals[Out any](rs []umbel.Result[Out]) []int64 {
	var os []int64
	for _, r := range rs {
		os = append(os, r.Ordinal)
	}
	return os
}

func TestCase24And14BytesComeBackAsTheyWere(t *testing.T) {
	data := [][]byte{nil, []byte(`""`), []byte("null"), []byte("[]"), []byte("{}"), []byte("0"),
		[]byte("9007199254740993"), {0, 1, 0}, []byte("\xff\xfe")}
	f := &fake{handle: echo}
	in := func(yield func(umbel.Payload) bool) {
		for _, d := range data {
			if !yield(umbel.Payload{ContentType: "x", Data: d}) {
				return
			}
		}
	}
	run, err := client.FanOut(t.Context(), newClient(t, f), raw, in)
	if err != nil {
		t.Fatal(err)
	}
	got, err := run.Gather(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range data {
		if string(got[i].Data) != string(d) || got[i].ContentType != "x" {
			t.Errorf("%q came back as %q", d, got[i].Data)
		}
	}
	// as values, nil and empty stay apart
	lists := umbel.Define[[]int, []int]("lists")
	outs, err := client.FanOut(t.Context(), newClient(t, &fake{handle: echo}), lists, slices.Values([][]int{nil, {}, {0}}))
	if err != nil {
		t.Fatal(err)
	}
	vs, err := outs.Gather(t.Context())
	if err != nil || vs[0] != nil || vs[1] == nil || len(vs[1]) != 0 || len(vs[2]) != 1 {
		t.Errorf("%#v, %v", vs, err)
	}
	big := umbel.Define[uint64, uint64]("big")
	if v, err := client.Do(t.Context(), newClient(t, &fake{handle: echo}), big, 1<<64-1); err != nil || v != 1<<64-1 {
		t.Error(v, err)
	}
}

func TestCase25OneGathersAListOfOne(t *testing.T) {
	got, err := startEcho(t, 1).Gather(t.Context())
	if err != nil || !slices.Equal(got, []int{0}) {
		t.Error(got, err)
	}
}

func TestPromise10NoneGathersAnEmptyList(t *testing.T) {
	run := startEcho(t, 0)
	got, err := run.Gather(t.Context())
	if err != nil || got == nil || len(got) != 0 {
		t.Error(got, err)
	}
	if err := run.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if rs, err := collect(t, run); len(rs) != 0 || err != nil {
		t.Error(rs, err)
	}
}

func startEcho(t *testing.T, n int) *client.Run[int] {
	t.Helper()
	run, err := client.FanOut(t.Context(), newClient(t, &fake{handle: echo, page: 3}), double, upTo(n))
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func TestCase26GatherWaitsForTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		run := open(t, f, 3)
		go func() {
			for _, o := range []int64{2, 0, 1} {
				time.Sleep(2 * umbel.MaxPollWait) // long polls end and are asked again
				f.resolve("w", o, fmt.Sprint(10*o), nil)
			}
		}()
		got, err := run.Gather(t.Context())
		if err != nil || !slices.Equal(got, []int{0, 10, 20}) {
			t.Error(got, err)
		}
		if n := f.count("Results"); n > 12 {
			t.Errorf("asked %d times in five minutes", n)
		}
		if err := run.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestCase27FailuresEndTheGather(t *testing.T) {
	f := &fake{page: 7, handle: func(o int64, row umbel.StagedRow) (umbel.Payload, error) {
		if o%2 == 1 {
			return umbel.Payload{}, umbel.Typed("odd", fmt.Errorf("%d is odd", o))
		}
		return echo(o, row)
	}}
	run := open(t, f, 500)
	got, err := run.Gather(t.Context())
	check := func(err error) {
		t.Helper()
		fe, ok := errors.AsType[*umbel.FanOutError](err)
		if !ok {
			t.Fatalf("got %v", err)
		}
		if fe.WorkflowID != "w" || fe.RunID != run.ID() || fe.Status != umbel.StatusFailed ||
			fe.Counts != (umbel.Counts{Scheduled: 500, Completed: 250, Failed: 250}) {
			t.Errorf("%+v", fe)
		}
		if len(fe.Sample) != umbel.MaxFailureSample || fe.Sample[0].Ordinal != 1 || fe.Sample[99].Ordinal != 199 ||
			fe.Sample[0].Err.Type != "odd" || fe.Sample[0].Err.Attempt != 10 {
			t.Errorf("sample of %d: %+v", len(fe.Sample), fe.Sample[0])
		}
	}
	check(err)
	check(run.Wait(t.Context()))
	if len(got) != 500 || got[2] != 2 || got[3] != 0 {
		t.Errorf("%d values: %v", len(got), got[:4])
	}
	rs, err := collect(t, run)
	if err != nil || len(rs) != 500 {
		t.Fatal(len(rs), err)
	}
	if fail, ok := errors.AsType[*umbel.Failure](rs[1].Err); !ok || fail.Attempt != 10 || rs[1].Status != umbel.StatusFailed {
		t.Errorf("%+v", rs[1])
	}
	if rs[0].Err != nil || rs[0].Status != umbel.StatusCompleted {
		t.Errorf("%+v", rs[0])
	}
}

func TestCase28CancelledRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		run := open(t, f, 3)
		if err := run.Cancel(t.Context(), "wrong input", 1); err != nil {
			t.Fatal(err)
		}
		f.resolve("w", 0, "1", nil)
		if c, err := run.Progress(t.Context()); err != nil || c != (umbel.Counts{Scheduled: 3, Pending: 1, Completed: 1, Cancelled: 1}) {
			t.Error(c, err)
		}
		f.resolve("w", 2, "3", nil)
		got, err := run.Gather(t.Context())
		fe, ok := errors.AsType[*umbel.FanOutError](err)
		if !ok || fe.Counts.Cancelled != 1 || len(fe.Sample) != 0 || !slices.Equal(got, []int{1, 0, 3}) {
			t.Errorf("%v, %v", got, err)
		}
		if rs, _ := collect(t, run); !errors.Is(rs[0].Err, umbel.ErrCancelled) || rs[0].Status != umbel.StatusCancelled {
			t.Errorf("%+v", rs[0])
		}
	})
}

func TestPromise12CancelRun(t *testing.T) {
	f := &fake{}
	run := open(t, f, 3)
	f.resolve("w", 0, "1", nil)
	for range 2 {
		if err := run.Cancel(t.Context(), "enough"); err != nil {
			t.Fatal(err)
		}
	}
	err := run.Wait(t.Context())
	fe, ok := errors.AsType[*umbel.FanOutError](err)
	if !ok || fe.Status != umbel.StatusCancelled || fe.Counts.Cancelled != 2 || !errors.Is(err, umbel.ErrCancelled) {
		t.Error(err)
	}
}

func TestCancelSplitsOrdinals(t *testing.T) {
	f := &fake{}
	open(t, f, 2500)
	run := client.Attach(newClient(t, f), double, "w")
	if err := run.Cancel(t.Context(), "", slices.Collect(func(yield func(int64) bool) {
		for i := range int64(2500) {
			if !yield(i) {
				return
			}
		}
	})...); err != nil {
		t.Fatal(err)
	}
	if f.count("Cancel") != 3 || len(f.run("w").results) != 2500 || run.ID() != f.run("w").id {
		t.Error(f.calls, len(f.run("w").results))
	}
	part := 0
	for _, req := range f.requests {
		if c, ok := req.(umbel.CancelRequest); ok {
			if len(c.Ordinals) > umbel.MaxReportItems || part > 0 && c.RunID != run.ID() {
				t.Errorf("%d ordinals of run %q in a call", len(c.Ordinals), c.RunID)
			}
			part++
		}
	}
}

func TestCase34AttachFromAnotherProcess(t *testing.T) {
	f := &fake{handle: echo}
	open(t, f, 10)
	run := client.Attach(newClient(t, f), double, "w")
	if run.ID() != "" || !run.Attached() || run.WorkflowID() != "w" {
		t.Errorf("%q %v", run.ID(), run.Attached())
	}
	got, err := run.Gather(t.Context())
	if err != nil || len(got) != 10 || run.ID() != f.run("w").id {
		t.Error(got, err, run.ID())
	}
	ps, err := client.AttachRaw(newClient(t, f), "w").Gather(t.Context())
	if err != nil || len(ps) != 10 || string(ps[9].Data) != "9" || ps[9].ContentType != umbel.ContentTypeJSON {
		t.Error(ps, err)
	}
}

func TestAttachToUnknownIsNotFound(t *testing.T) {
	run := client.Attach(newClient(t, &fake{}), double, "w")
	_, gather := run.Gather(t.Context())
	_, progress := run.Progress(t.Context())
	_, results := collect(t, run)
	for i, err := range []error{run.Wait(t.Context()), run.Cancel(t.Context(), ""), gather, progress, results} {
		if !errors.Is(err, umbel.ErrNotFound) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// An attached run follows its workflow from call to call, and stays with one run within a call.
func TestAttachFollowsTheWorkflow(t *testing.T) {
	f := &fake{handle: echo, page: 2}
	first := open(t, f, 5)
	run := client.Attach(newClient(t, f), double, "w")
	for r, err := range run.Results(t.Context()) {
		if r.Ordinal == 1 {
			f.mu.Lock()
			clear(f.runs)
			f.mu.Unlock()
			open(t, f, 3)
		}
		if r.Ordinal > 1 || err != nil && !errors.Is(err, umbel.ErrNotFound) {
			t.Error(r, err)
		}
	}
	if got, err := run.Gather(t.Context()); err != nil || len(got) != 3 || run.ID() == first.ID() {
		t.Error(got, err)
	}
	if _, err := first.Gather(t.Context()); !errors.Is(err, umbel.ErrNotFound) {
		t.Errorf("the started run became another: %v", err)
	}
}

// A wait that takes several long polls stays with the run that it found first.
func TestAttachedWaitStaysWithItsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		first := open(t, f, 1)
		time.AfterFunc(3*umbel.MaxPollWait, func() { f.resolve("w", 0, "1", nil) })
		if err := client.Attach(newClient(t, f), double, "w").Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		polls := 0
		for _, req := range f.requests {
			if d, ok := req.(umbel.DescribeRequest); ok {
				if d.Wait != umbel.MaxPollWait || polls > 0 && d.RunID != first.ID() {
					t.Errorf("poll %d: %+v", polls, d)
				}
				polls++
			}
		}
		if polls < 3 {
			t.Errorf("%d polls", polls)
		}
	})
}

func TestCase50WorkflowIDStaysAsItIs(t *testing.T) {
	for _, id := range []umbel.WorkflowID{"00123", "{}:*", "a}b{", "🌼 umbel"} {
		f := &fake{handle: echo}
		run, err := client.FanOut(t.Context(), newClient(t, f), double, upTo(1), client.WorkflowID(id))
		if err != nil || run.WorkflowID() != id || f.run(id) == nil {
			t.Error(id, err)
		}
	}
}

func TestUndecodableResult(t *testing.T) {
	f := &fake{}
	run := open(t, f, 2)
	f.resolve("w", 0, `"no number"`, nil)
	f.resolve("w", 1, "1", nil)
	rs, err := collect(t, run)
	fail, ok := errors.AsType[*umbel.Failure](rs[0].Err)
	if err != nil || !ok || fail.Type != umbel.FailureInvalidResult || fail.Attempt != 1 || rs[0].Status != umbel.StatusCompleted {
		t.Errorf("%+v, %v", rs[0], err)
	}
	got, err := run.Gather(t.Context())
	fe, ok := errors.AsType[*umbel.FanOutError](err)
	if !ok || fe.Counts.Completed != 2 || len(fe.Sample) != 1 || fe.Status != umbel.StatusCompleted || !slices.Equal(got, []int{0, 1}) {
		t.Error(got, err)
	}
	if err := run.Wait(t.Context()); err != nil {
		t.Errorf("wait looks at no value: %v", err)
	}
}

func TestRunIsSafeForConcurrentUse(t *testing.T) {
	f := &fake{handle: echo, page: 5}
	open(t, f, 50)
	run := client.Attach(newClient(t, f), double, "w")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if got, err := run.Gather(t.Context()); err != nil || len(got) != 50 {
				t.Error(err)
			}
			_ = run.ID()
			if _, err := run.Progress(t.Context()); err != nil {
				t.Error(err)
			}
			_ = run.Cancel(context.Background(), "", 1)
		})
	}
	wg.Wait()
}
