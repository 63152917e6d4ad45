package client_test

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
)

var (
	double = umbel.Define[int, int]("double")
	raw    = umbel.Define[umbel.Payload, umbel.Payload]("raw")
)

func upTo(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

// chunks yields n payloads of size bytes: a few of them make a large start.
func chunks(n, size int) iter.Seq[umbel.Payload] {
	data := []byte(strings.Repeat("x", size))
	return func(yield func(umbel.Payload) bool) {
		for range n {
			if !yield(umbel.Payload{Data: data}) {
				return
			}
		}
	}
}

const half = umbel.MaxStageBytes / 2

func TestPromise2IdempotentStart(t *testing.T) {
	for name, n := range map[string]int{"one commit": 10, "staged": 25_000} {
		t.Run(name, func(t *testing.T) {
			f := &fake{}
			c := newClient(t, f)
			start := func(n int, o ...client.StartOption) (*client.Run[int], error) {
				return client.FanOut(t.Context(), c, double, upTo(n), append(o, client.WorkflowID("w"))...)
			}
			first, err := start(n)
			if err != nil || first.Attached() || first.ID() != f.run("w").id {
				t.Fatalf("first: %v, attached %v", err, first.Attached())
			}
			again, err := start(n)
			if err != nil || !again.Attached() || again.ID() != first.ID() {
				t.Fatalf("same inputs: %v, %+v", err, again)
			}
			for what, o := range map[string]client.StartOption{
				"reject": client.Reject, "other retry": client.Retry(umbel.RetryPolicy{MaxAttempts: 3}),
				"other queue": client.TaskQueue("q"), "other start": client.StartAfter(1e9),
			} {
				_, err := start(n, o)
				e, ok := errors.AsType[*umbel.Error](err)
				if !ok || e.Code != umbel.CodeAlreadyExists || e.RunID != first.ID() || e.WorkflowID != "w" {
					t.Errorf("%s: %v", what, err)
				}
			}
			if _, err := start(n + 1); !errors.Is(err, umbel.ErrAlreadyExists) {
				t.Errorf("one more input: %v", err)
			}
			if same, err := start(n, client.TaskQueue("default"), client.Retry(umbel.DefaultRetry)); err != nil || !same.Attached() {
				t.Errorf("defaults written out: %v", err)
			}
			if f.leftStaged() != 0 || len(f.run("w").rows) != n {
				t.Errorf("%d staged, %d rows", f.leftStaged(), len(f.run("w").rows))
			}
		})
	}
}

func TestPromise2ExistingReadsNoInput(t *testing.T) {
	f := &fake{}
	c := newClient(t, f)
	read := 0
	in := func(yield func(int) bool) { read++; yield(7) }
	for i := range 2 {
		run, err := client.FanOut(t.Context(), c, double, in, client.WorkflowID("w"), client.Existing)
		if err != nil || run.Attached() != (i == 1) || run.ID() != f.run("w").id {
			t.Fatal(i, err)
		}
	}
	if read != 1 || f.count("Commit") != 1 {
		t.Errorf("read %d times, %d commits", read, f.count("Commit"))
	}
}

func TestPromise2RejectStopsReading(t *testing.T) {
	f := &fake{}
	c := newClient(t, f)
	if _, err := client.FanOut(t.Context(), c, raw, chunks(1, 1), client.WorkflowID("w")); err != nil {
		t.Fatal(err)
	}
	read := 0
	in := client.Map(chunks(100, half), func(p umbel.Payload) umbel.Item[umbel.Payload] {
		read++
		return umbel.Item[umbel.Payload]{Input: p}
	})
	_, err := client.FanOutItems(t.Context(), c, raw, in, client.WorkflowID("w"), client.Reject)
	if !errors.Is(err, umbel.ErrAlreadyExists) || read > 3 || f.count("Stage") > 0 {
		t.Errorf("%v after %d items, %d staged", err, read, f.count("Stage"))
	}
}

// A start that another client overtakes attaches, and forgets what it staged.
func TestPromise2OvertakenStart(t *testing.T) {
	f := &fake{}
	c := newClient(t, f)
	var other umbel.RunID
	in := func(yield func(umbel.Payload) bool) {
		for p := range chunks(6, half) {
			if !yield(p) {
				return
			}
		}
		if other == "" {
			other = "-"
			run, err := client.FanOut(t.Context(), c, raw, chunks(6, half), client.WorkflowID("w"))
			if err != nil {
				t.Error(err)
			}
			other = run.ID()
		}
	}
	run, err := client.FanOut(t.Context(), c, raw, in, client.WorkflowID("w"))
	if err != nil || !run.Attached() || run.ID() != other || f.leftStaged() != 0 {
		t.Errorf("%v, %+v, %d left", err, run, f.leftStaged())
	}
}

func TestPromise2LostRepliesOfAStart(t *testing.T) {
	for _, policy := range []client.OnExisting{client.SameInputs, client.Existing, client.Reject} {
		for _, n := range []int{1, 6} {
			t.Run(fmt.Sprint(policy, n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := &fake{fault: func(op string, n int) (error, error) {
						if n%2 == 1 { // the first try of everything is applied, its reply lost
							return nil, unavailable
						}
						return nil, nil
					}}
					run, err := client.FanOut(t.Context(), newClient(t, f), raw, chunks(n, half), client.WorkflowID("w"), policy)
					if err != nil || run.Attached() || run.ID() != f.run("w").id || len(f.run("w").rows) != n {
						t.Fatalf("%v, %+v", err, run)
					}
					if f.count("Discard") != 0 {
						t.Error("a committed run was discarded")
					}
				})
			})
		}
	}
}

// A commit whose outcome nobody knows may be a run by now.
func TestPromise2UnknownCommitIsNotDiscarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{fault: func(op string, n int) (error, error) {
			if op == "Commit" {
				if n == 1 {
					return nil, unavailable
				}
				return &umbel.Error{Code: umbel.CodeOverloaded, NotApplied: true}, nil
			}
			return nil, nil
		}}
		_, err := client.FanOut(t.Context(), newClient(t, f), raw, chunks(6, half), client.WorkflowID("w"))
		if !errors.Is(err, umbel.ErrOverloaded) || f.count("Discard") != 0 || f.run("w") == nil {
			t.Errorf("%v, %d discards", err, f.count("Discard"))
		}
	})
}

// Rows carry what holds for them: the start's own delay is in theirs.
func TestDefaultsOfAStartReachItsRows(t *testing.T) {
	f := &fake{}
	items := func(yield func(umbel.Item[int], error) bool) {
		_ = yield(umbel.Item[int]{}, nil) &&
			yield(umbel.Item[int]{TaskQueue: "own", Node: "n2", Delay: time.Second}, nil)
	}
	run, err := client.FanOutItems(t.Context(), newClient(t, f), double, items,
		client.TaskQueue("q"), client.Node("n1"), client.StartAfter(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	rows := f.run(run.WorkflowID()).rows
	if r := rows[0]; r.TaskQueue != "q" || r.Node != "n1" || r.Delay != time.Minute {
		t.Errorf("%+v", r)
	}
	if r := rows[1]; r.TaskQueue != "own" || r.Node != "n2" || r.Delay != time.Minute+time.Second {
		t.Errorf("%+v", r)
	}
}

func TestTryMap(t *testing.T) {
	broken := errors.New("listing broke")
	listing := func(fail error) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			_ = yield("a", nil) && yield("b", nil) && fail != nil && yield("", fail)
		}
	}
	item := func(s string) umbel.Item[int] { return umbel.Item[int]{Input: len(s), Key: s} }
	f := &fake{}
	run, err := client.FanOutItems(t.Context(), newClient(t, f), double, client.TryMap(listing(nil), item))
	if err != nil || f.run(run.WorkflowID()).rows[1].Key != "b" {
		t.Error(err)
	}
	if _, err := client.FanOutItems(t.Context(), newClient(t, f), double, client.TryMap(listing(broken), item)); !errors.Is(err, broken) {
		t.Error(err)
	}
	if client.TryMap(nil, item) != nil || client.Map(nil, item) != nil {
		t.Error("nil sequences must stay nil, for the start to refuse them")
	}
}

// The source may fill one buffer again and again.
func TestPayloadsAreCopied(t *testing.T) {
	f := &fake{handle: echo}
	buf := make([]byte, 1)
	in := func(yield func(umbel.Payload) bool) {
		for i := range 3 {
			buf[0] = byte(i)
			if !yield(umbel.Payload{Data: buf}) {
				return
			}
		}
	}
	run, err := client.FanOut(t.Context(), newClient(t, f), raw, in)
	if err != nil {
		t.Fatal(err)
	}
	got, err := run.Gather(t.Context())
	if err != nil || got[0].Data[0] != 0 || got[1].Data[0] != 1 || got[2].Data[0] != 2 {
		t.Fatal(got, err)
	}
}

func TestDo(t *testing.T) {
	f := &fake{handle: func(o int64, row umbel.StagedRow) (umbel.Payload, error) {
		if string(row.Input.Data) == "13" {
			return umbel.Payload{}, umbel.Typed("unlucky", errors.New("13"))
		}
		return echo(o, row)
	}}
	c := newClient(t, f)
	if v, err := client.Do(t.Context(), c, double, 7, client.WorkflowID("w")); err != nil || v != 7 {
		t.Error(v, err)
	}
	if v, err := client.Do(t.Context(), c, double, 7, client.WorkflowID("w")); err != nil || v != 7 || f.count("Commit") != 2 {
		t.Error(v, err)
	}
	_, err := client.Do(t.Context(), c, double, 13)
	if fail, ok := errors.AsType[*umbel.Failure](err); !ok || fail.Type != "unlucky" {
		t.Error(err)
	}
	if _, err := client.Do(t.Context(), c, double, 8, client.WorkflowID("w")); !errors.Is(err, umbel.ErrAlreadyExists) {
		t.Error(err)
	}
}

func TestMixed(t *testing.T) {
	length := umbel.Define[string, int]("length")
	f := &fake{handle: func(o int64, row umbel.StagedRow) (umbel.Payload, error) {
		if row.Type == "length" {
			return umbel.Payload{Data: fmt.Append(nil, len(row.Input.Data)-2)}, nil
		}
		return echo(o, row)
	}}
	calls := func(yield func(umbel.Call, error) bool) {
		_ = yield(double.Call(umbel.Item[int]{Input: 21, Key: "a"}), nil) &&
			yield(length.Call(umbel.Item[string]{Input: "four", Key: "b", Node: "n", TaskQueue: "q"}), nil)
	}
	run, err := client.FanOutMixed(t.Context(), newClient(t, f), calls, client.WorkflowID("w"))
	if err != nil {
		t.Fatal(err)
	}
	rs, err := collect(t, run, client.WithInputs())
	if err != nil || len(rs) != 2 || rs[0].Type != "double" || rs[1].Key != "b" {
		t.Fatal(rs, err)
	}
	if v, err := double.Output(rs[0]); err != nil || v != 21 {
		t.Error(v, err)
	}
	if v, err := length.Output(rs[1]); err != nil || v != 4 {
		t.Error(v, err)
	}
	if in, err := length.Input(rs[1].Row); err != nil || in != "four" {
		t.Error(in, err)
	}
	if row := f.run("w").rows[1]; row.Node != "n" || row.TaskQueue != "q" {
		t.Errorf("%+v", row)
	}
	// attached with one of the activities, the other's result is no value of it
	rs2, err := collect(t, client.Attach(newClient(t, f), double, "w"))
	if fail, ok := errors.AsType[*umbel.Failure](rs2[1].Err); err != nil || rs2[0].Value != 21 || !ok ||
		fail.Type != umbel.FailureInvalidResult || !strings.Contains(fail.Message, `"length"`) {
		t.Error(rs2, err)
	}
}
