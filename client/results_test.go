package client_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
)

func TestResultsComeAsTheyFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		run := open(t, f, 3)
		began := time.Now()
		go func() {
			for _, o := range []int64{2, 0, 1} {
				time.Sleep(time.Minute)
				f.resolve("w", o, "1", nil)
			}
		}()
		var got []int64
		for r, err := range run.Results(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, r.Ordinal)
			if late := time.Since(began) - time.Duration(len(got))*time.Minute; late != 0 {
				t.Errorf("ordinal %d came %v late", r.Ordinal, late)
			}
		}
		if !slices.Equal(got, []int64{2, 0, 1}) {
			t.Error(got)
		}
	})
}

func TestResultsBreakAndRangeAgain(t *testing.T) {
	run := startEcho(t, 10)
	seq := run.Results(t.Context())
	for range 2 {
		var got []int64
		for r, err := range seq {
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, r.Ordinal); len(got) == 4 {
				break
			}
		}
		if !slices.Equal(got, []int64{0, 1, 2, 3}) {
			t.Error(got)
		}
	}
}

func TestResultsResumeFromAnyCursor(t *testing.T) {
	run := startEcho(t, 10)
	all, err := collect(t, run)
	if err != nil || len(all) != 10 {
		t.Fatal(all, err)
	}
	for i, r := range all {
		rest, err := collect(t, run, client.From(r.Cursor))
		if err != nil || !slices.Equal(ordinals(rest), ordinals(all[i+1:])) {
			t.Errorf("from %d: %v, %v", i, ordinals(rest), err)
		}
	}
	if again, err := collect(t, run, client.From("")); err != nil || len(again) != 10 {
		t.Error(again, err)
	}
}

func TestResultsWithInputs(t *testing.T) {
	run := startEcho(t, 2)
	for _, with := range []bool{true, false} {
		var opts []client.ResultOption
		if with {
			opts = append(opts, client.WithInputs())
		}
		rs, err := collect(t, run, opts...)
		if err != nil || (string(rs[1].Input.Data) == "1") != with {
			t.Errorf("%v: %+v, %v", with, rs[1], err)
		}
	}
}

// Redis is taken back while results are read: each ordinal comes once all the same.
func TestCase57ResultsSurviveARollback(t *testing.T) {
	f := &fake{page: 2}
	run := open(t, f, 6)
	for _, o := range []int64{0, 1, 2, 3} {
		f.resolve("w", o, "1", nil)
	}
	var got []int64
	for r, err := range run.Results(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.Ordinal)
		if len(got) == 4 {
			f.rollback("w", 1)
			for _, o := range []int64{5} { // fewer than the cursor is beyond
				f.resolve("w", o, "1", nil)
			}
			time.AfterFunc(10*time.Millisecond, func() {
				for _, o := range []int64{3, 4, 2, 1} {
					f.resolve("w", o, "1", nil)
				}
			})
		}
	}
	if !slices.Equal(got, []int64{0, 1, 2, 3, 5, 4}) {
		t.Error(got)
	}
}

func TestCase57LostCursorReadsFromTheStart(t *testing.T) {
	f := &fake{}
	run := open(t, f, 3)
	for o := range int64(3) {
		f.resolve("w", o, "1", nil)
	}
	all, _ := collect(t, run)
	f.rollback("w", 1)
	f.resolve("w", 2, "1", nil)
	time.AfterFunc(10*time.Millisecond, func() { f.resolve("w", 1, "1", nil) })
	rest, err := collect(t, run, client.From(all[2].Cursor))
	if err != nil || !slices.Equal(ordinals(rest), []int64{0, 2, 1}) {
		t.Error(ordinals(rest), err)
	}
}

func TestCase57EndlessRollbacksEnd(t *testing.T) {
	f := &fake{page: 1}
	f.fault = func(op string, n int) (error, error) {
		if op == "Results" && n%2 == 0 {
			return &umbel.Error{Code: umbel.CodeCursorLost, NotApplied: true}, nil
		}
		return nil, nil
	}
	run := open(t, f, 3)
	f.resolve("w", 0, "1", nil)
	rs, err := collect(t, run)
	if !errors.Is(err, umbel.ErrCursorLost) || len(rs) != 1 {
		t.Error(rs, err)
	}
}

func TestResultsErrorComesOnceAndLast(t *testing.T) {
	f := &fake{handle: echo, page: 2, fault: func(op string, n int) (error, error) {
		if op == "Results" && n == 2 {
			return &umbel.Error{Code: umbel.CodeInternal}, nil
		}
		return nil, nil
	}}
	rs, err := collect(t, open(t, f, 5))
	if !errors.Is(err, umbel.ErrInternal) || len(rs) != 2 {
		t.Error(rs, err)
	}
}

// What breaks the contract is an error, never a panic.
func TestBrokenReplies(t *testing.T) {
	for _, o := range []int64{-1, 1 << 24, 2} {
		f := &fake{handle: echo}
		run := open(t, f, 2)
		f.run("w").results[1].Ordinal = o
		if _, err := run.Gather(t.Context()); !errors.Is(err, umbel.ErrInternal) {
			t.Errorf("ordinal %d: %v", o, err)
		}
	}
	f := &fake{handle: echo}
	run := open(t, f, 2)
	f.run("w").commit.Scheduled = 1 << 40
	if _, err := run.Gather(t.Context()); !errors.Is(err, umbel.ErrInternal) {
		t.Errorf("2^40 rows: %v", err)
	}
}

// A sample is a help: without it the error is as true.
func TestWaitWithoutASample(t *testing.T) {
	f := &fake{page: 1, handle: func(int64, umbel.StagedRow) (umbel.Payload, error) {
		return umbel.Payload{}, errors.New("no")
	}, fault: func(op string, n int) (error, error) {
		if op == "Results" && n > 2 {
			return &umbel.Error{Code: umbel.CodeNotFound}, nil
		}
		return nil, nil
	}}
	err := open(t, f, 5).Wait(t.Context())
	if fe, ok := errors.AsType[*umbel.FanOutError](err); !ok || fe.Counts.Failed != 5 || len(fe.Sample) != 2 {
		t.Error(err)
	}
}

func TestContextEndsAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		run := open(t, f, 1)
		for name, do := range map[string]func(context.Context) error{
			"wait":   run.Wait,
			"gather": func(ctx context.Context) error { _, err := run.Gather(ctx); return err },
			"results": func(ctx context.Context) (last error) {
				for _, err := range run.Results(ctx) {
					last = err
				}
				return last
			},
			"do": func(ctx context.Context) error {
				_, err := client.Do(ctx, newClient(t, f), double, 0, client.WorkflowID("w"))
				return err
			},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 75*time.Second)
			began := time.Now()
			err := do(ctx)
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, umbel.ErrUnavailable) || time.Since(began) != 75*time.Second {
				t.Errorf("%s: %v after %v", name, err, time.Since(began))
			}
			ctx, cancel = context.WithCancel(t.Context())
			cancel()
			if err := do(ctx); !errors.Is(err, context.Canceled) || !errors.Is(err, umbel.ErrUnavailable) {
				t.Errorf("%s, cancelled before: %v", name, err)
			}
		}
	})
}

// A server that does not hold its replies back is not asked in a tight loop.
func TestEmptyRepliesArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &impatient{fake: &fake{}}
		c, err := client.New(f, client.Config{})
		if err != nil {
			t.Fatal(err)
		}
		run, err := client.FanOut(t.Context(), c, double, upTo(1))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = run.Wait(ctx)
		began := time.Now()
		for range run.Results(t.Context()) {
			t.Fatal("nothing is there")
		}
		if d, r := f.count("Describe"), f.count("Results"); d > 22 || r != 3 || time.Since(began) < 50*time.Millisecond {
			t.Errorf("%d calls, and %d in %v", d, r, time.Since(began))
		}
	})
}

// impatient answers at once.
type impatient struct{ *fake }

func (f *impatient) Describe(ctx context.Context, req umbel.DescribeRequest) (umbel.DescribeReply, error) {
	req.Wait = 0
	return f.fake.Describe(ctx, req)
}

func (f *impatient) Results(ctx context.Context, req umbel.ResultsRequest) (umbel.ResultsReply, error) {
	req.Wait = 0
	rep, err := f.fake.Results(ctx, req)
	rep.Done = f.count("Results") == 3
	return rep, err
}
