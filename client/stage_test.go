package client_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
)

func TestCase39Sizes(t *testing.T) {
	sizes := []int{0, 1, 999, 1000, 1001, 3999, 4000, 7999, 8000, 9_999, 10_000, 10_001, 20_000, 65535, 65536, 100001}
	if testing.Short() {
		sizes = sizes[:13]
	}
	for _, n := range sizes {
		f := &fake{handle: echo, page: 4096}
		run, err := client.FanOut(t.Context(), newClient(t, f), double, upTo(n), client.WorkflowID("w"))
		if err != nil {
			t.Fatal(n, err)
		}
		got, err := run.Gather(t.Context())
		if err != nil || got == nil || !slices.Equal(got, slices.AppendSeq([]int{}, upTo(n))) {
			t.Errorf("N = %d: %d values, %v", n, len(got), err)
		}
		single := f.count("Commit") == 1 && f.count("Begin") == 0 && f.count("Stage") == 0
		if single != (n <= umbel.MaxStageRows) {
			t.Errorf("N = %d: %v", n, f.calls)
		}
		checkBounds(t, f)
	}
}

// checkBounds checks that no call carried more than a staging call may.
func checkBounds(t *testing.T, f *fake) {
	t.Helper()
	next := int64(0)
	for _, req := range f.requests {
		var rows []umbel.StagedRow
		switch req := req.(type) {
		case umbel.StageRequest:
			rows = req.Rows
			if req.Offset != next {
				t.Errorf("staged at %d, want %d", req.Offset, next)
			}
			next += int64(len(rows))
			if len(rows) == 0 {
				t.Error("an empty staging call")
			}
		case umbel.CommitRequest:
			rows = req.Rows
			if next += int64(len(rows)); next != req.Scheduled {
				t.Errorf("commit of %d, sent %d", req.Scheduled, next)
			}
		}
		size := 0
		for _, r := range rows {
			size += len(r.Input.Data) + len(r.Type) + len(r.TaskQueue) + len(r.Key) + len(r.Node)
		}
		if len(rows) > umbel.MaxStageRows || size > umbel.MaxStageBytes && len(rows) > 1 {
			t.Errorf("%d rows of %d bytes in one call", len(rows), size)
		}
	}
}

func TestPromise15LargeItemTravelsAlone(t *testing.T) {
	f := &fake{handle: echo}
	sizes := []int{10, umbel.MaxPayloadBytes, umbel.MaxPayloadBytes, 0, half, half, 5}
	in := func(yield func(umbel.Payload) bool) {
		for _, n := range sizes {
			if !yield(umbel.Payload{Data: make([]byte, n)}) {
				return
			}
		}
	}
	run, err := client.FanOut(t.Context(), newClient(t, f), raw, in)
	if err != nil {
		t.Fatal(err)
	}
	got, err := run.Gather(t.Context())
	if err != nil || len(got) != len(sizes) || len(got[1].Data) != umbel.MaxPayloadBytes {
		t.Fatal(len(got), err)
	}
	checkBounds(t, f)
}

func TestStageTakesPartOfABatch(t *testing.T) {
	f := &fake{partial: true, handle: echo}
	run, err := client.FanOut(t.Context(), newClient(t, f), double, upTo(25_000))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := run.Gather(t.Context()); err != nil || !slices.Equal(got, slices.Collect(upTo(25_000))) {
		t.Fatal(len(got), err)
	}
}

func TestCase40RefusedStartsLeaveNothing(t *testing.T) {
	broken := errors.New("listing broke")
	ctx, cancel := context.WithCancel(t.Context())
	items := func(n int, last func(yield func(umbel.Item[umbel.Payload], error) bool)) iter.Seq2[umbel.Item[umbel.Payload], error] {
		return func(yield func(umbel.Item[umbel.Payload], error) bool) {
			for p := range chunks(n, half) {
				if !yield(umbel.Item[umbel.Payload]{Input: p}, nil) {
					return
				}
			}
			if last != nil {
				last(yield)
			}
		}
	}
	one := func(it umbel.Item[umbel.Payload], err error) iter.Seq2[umbel.Item[umbel.Payload], error] {
		return items(10, func(yield func(umbel.Item[umbel.Payload], error) bool) { yield(it, err) })
	}
	nodes := func(yield func(umbel.Item[umbel.Payload], error) bool) {
		for i := range umbel.MaxRoutes + 1 {
			if !yield(umbel.Item[umbel.Payload]{Node: fmt.Sprint(i), Input: umbel.Payload{Data: make([]byte, half)}}, nil) {
				return
			}
		}
	}
	cases := map[string]struct {
		items iter.Seq2[umbel.Item[umbel.Payload], error]
		want  error
		text  string
		opts  []client.StartOption
	}{
		"iterator error": {one(umbel.Item[umbel.Payload]{}, broken), broken, "reading item 10", nil},
		"payload":        {one(umbel.Item[umbel.Payload]{Input: umbel.Payload{Data: make([]byte, umbel.MaxPayloadBytes+1)}}, nil), umbel.ErrLimit, "input of ordinal 10 2097153", nil},
		"key":            {one(umbel.Item[umbel.Payload]{Key: "\n"}, nil), umbel.ErrInvalid, "key of ordinal 10", nil},
		"rows":           {items(11, nil), umbel.ErrLimit, "10 rows of a run", []client.StartOption{client.Bounds(10, umbel.MaxRunInputBytes)}},
		"bytes":          {items(11, nil), umbel.ErrLimit, "input bytes of a run", []client.StartOption{client.Bounds(umbel.MaxRows, 10*half)}},
		"routes":         {nodes, umbel.ErrLimit, "64 routes of a run", nil},
		"context": {items(6, func(yield func(umbel.Item[umbel.Payload], error) bool) {
			cancel()
			yield(umbel.Item[umbel.Payload]{}, nil)
		}), context.Canceled, "the context ended", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := &fake{}
			ctx := ctx
			if name != "context" {
				ctx = t.Context()
			}
			_, err := client.FanOutItems(ctx, newClient(t, f), raw, tc.items, append(tc.opts, client.WorkflowID("w"))...)
			if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("got %v", err)
			}
			if f.count("Stage") == 0 || f.count("Commit") != 0 || f.leftStaged() != 0 || f.run("w") != nil {
				t.Errorf("left: %v, %d staged", f.calls, f.leftStaged())
			}
		})
	}
}

func TestCase40EncodeErrorLeavesNothing(t *testing.T) {
	bad := umbel.Define[any, int]("bad")
	in := func(yield func(any) bool) {
		for range 20_000 {
			if !yield(1) {
				return
			}
		}
		yield(make(chan int))
	}
	f := &fake{}
	_, err := client.FanOut(t.Context(), newClient(t, f), bad, in, client.WorkflowID("w"))
	if !errors.Is(err, umbel.ErrInvalid) || !strings.Contains(err.Error(), "ordinal 20000") || f.leftStaged() != 0 || f.count("Commit") != 0 {
		t.Error(err, f.calls)
	}
}

func TestCase40PanickingSourceLeavesNothing(t *testing.T) {
	f := &fake{}
	func() {
		defer func() {
			if recover() != "boom" {
				t.Error("the panic did not reach the caller")
			}
		}()
		in := func(yield func(umbel.Payload) bool) {
			for p := range chunks(10, half) {
				yield(p)
			}
			panic("boom")
		}
		_, _ = client.FanOut(t.Context(), newClient(t, f), raw, in)
	}()
	if f.leftStaged() != 0 || f.count("Stage") == 0 || f.count("Discard") != 1 {
		t.Error(f.calls)
	}
}

func TestCase60StagingLost(t *testing.T) {
	for _, op := range []string{"Stage", "Commit"} {
		f := &fake{fault: func(o string, n int) (error, error) {
			if o == op && (n == 2 || o == "Commit") {
				return &umbel.Error{Code: umbel.CodeStagingLost, NotApplied: true}, nil
			}
			return nil, nil
		}}
		_, err := client.FanOut(t.Context(), newClient(t, f), raw, chunks(20, half), client.WorkflowID("w"))
		if !errors.Is(err, umbel.ErrStagingLost) || f.run("w") != nil || f.leftStaged() != 0 {
			t.Errorf("%s: %v, %v", op, err, f.calls)
		}
	}
}

// A staging call that failed ends the start at the next item, not at the next full batch.
func TestFailedStageStopsReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{fault: func(o string, n int) (error, error) {
			if o == "Stage" {
				return &umbel.Error{Code: umbel.CodeOverloaded, NotApplied: true}, nil
			}
			return nil, nil
		}}
		trickled := 0
		in := func(yield func(umbel.Payload) bool) {
			for p := range chunks(2, half) {
				if !yield(p) {
					return
				}
			}
			for range 100 {
				time.Sleep(time.Second)
				trickled++
				if !yield(umbel.Payload{}) {
					return
				}
			}
		}
		if _, err := client.FanOut(t.Context(), newClient(t, f), raw, in); !errors.Is(err, umbel.ErrOverloaded) || trickled != 1 {
			t.Errorf("%v after %d items", err, trickled)
		}
	})
}

// What is on its way when a start fails has ended before it is discarded, or it would be staged after all.
func TestCase40DiscardComesLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("listing broke")
		f := &fake{fault: func(o string, n int) (error, error) {
			if o == "Stage" {
				time.Sleep(time.Second)
			}
			return nil, nil
		}}
		in := func(yield func(umbel.Item[umbel.Payload], error) bool) {
			for p := range chunks(2, half) {
				if !yield(umbel.Item[umbel.Payload]{Input: p}, nil) {
					return
				}
			}
			yield(umbel.Item[umbel.Payload]{}, broken)
		}
		_, err := client.FanOutItems(t.Context(), newClient(t, f), raw, in)
		synctest.Wait()
		if !errors.Is(err, broken) || f.count("Stage") != 1 || f.count("Discard") != 1 || f.leftStaged() != 0 {
			t.Errorf("%v, %v, %d left", err, f.calls, f.leftStaged())
		}
	})
}

func TestStagesWhileReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		f := &fake{fault: func(o string, n int) (error, error) {
			if o == "Stage" && n == 1 {
				<-release
			}
			return nil, nil
		}}
		read := 0
		in := client.Map(chunks(20, half), func(p umbel.Payload) umbel.Item[umbel.Payload] {
			read++
			return umbel.Item[umbel.Payload]{Input: p}
		})
		done := make(chan error)
		go func() {
			_, err := client.FanOutItems(t.Context(), newClient(t, f), raw, in)
			done <- err
		}()
		synctest.Wait()
		// the first batch hangs, the next was read, and no more
		if f.count("Stage") != 1 || read < 2 || read > 4 {
			t.Errorf("%d calls, %d items read", f.count("Stage"), read)
		}
		close(release)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestCase41FlatMemory(t *testing.T) {
	n := 1_000_000
	if testing.Short() {
		n = 200_000
	}
	f := &fake{forget: true}
	var early, late uint64
	in := func(yield func(int) bool) {
		for i := range n {
			switch i {
			case n / 10:
				early = heap()
			case n - 1:
				late = heap()
			}
			if !yield(i) {
				return
			}
		}
	}
	run, err := client.FanOut(t.Context(), newClient(t, f), double, in)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.run(run.WorkflowID()).commit.Scheduled; got != int64(n) {
		t.Errorf("%d rows", got)
	}
	if late > early+4<<20 || late > 32<<20 {
		t.Errorf("%d bytes in use at a tenth, %d at the end", early, late)
	}
	t.Logf("%d KiB in use at a tenth, %d KiB at the end", early>>10, late>>10)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkFanOut(b *testing.B) {
	c := newClient(b, &fake{forget: true})
	b.ReportAllocs()
	if _, err := client.FanOut(b.Context(), c, double, upTo(b.N)); err != nil && b.N <= umbel.MaxRows {
		b.Fatal(err)
	}
}
