package client_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
)

// read collects a sequence and checks that an error is the last thing in it, beside a zero value.
func read[T any](t *testing.T, seq iter.Seq2[T, error], zero func(T) bool) (got []T, last error) {
	t.Helper()
	for v, err := range seq {
		if last != nil {
			t.Error("something followed the error")
		}
		if last = err; err == nil {
			got = append(got, v)
		} else if !zero(v) {
			t.Errorf("with the error came %+v", v)
		}
	}
	return got, last
}

func noCounts(c umbel.Counts) bool { return c == umbel.Counts{} }

func TestWatchYieldsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		run := open(t, f, 4)
		// when how many are resolved, after the start
		moments := []time.Duration{0, 10*time.Second + time.Millisecond, 20*time.Second + 499*time.Millisecond, 30 * time.Second}
		began := time.Now()
		go func() {
			for i, at := range moments {
				if i == 0 {
					continue
				}
				time.Sleep(time.Until(began.Add(at)))
				f.resolve("w", int64(i), "1", nil)
				if i == 3 {
					f.resolve("w", 0, "", errors.New("no"))
				}
			}
		}()
		var resolved []int64
		for c, err := range run.Watch(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			late := time.Since(began) - moments[len(resolved)]
			resolved = append(resolved, c.Resolved())
			if closed := c.Resolved() == 4; late > 500*time.Millisecond || closed && late > 0 {
				t.Errorf("%+v came %v late", c, late)
			}
		}
		if !slices.Equal(resolved, []int64{0, 1, 2, 4}) {
			t.Error(resolved)
		}
		if n := f.count("Describe"); n > 30*4+5 {
			t.Errorf("%d calls in 30 s", n)
		}
	})
}

func TestWatchAClosedRun(t *testing.T) {
	for n := range 2 {
		run := startEcho(t, n)
		for range 2 { // it can be ranged over again
			got, err := read(t, run.Watch(t.Context()), noCounts)
			if err != nil || len(got) != 1 || got[0].Completed != int64(n) {
				t.Errorf("of %d: %+v, %v", n, got, err)
			}
		}
	}
}

func TestWatchBreak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		run := open(t, f, 1)
		for range run.Watch(t.Context()) {
			break
		}
		if n := f.count("Describe"); n != 1 {
			t.Errorf("%d calls", n)
		}
	})
}

func TestWatchErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, &fake{})
		if got, err := read(t, client.Attach(c, double, "none").Watch(t.Context()), noCounts); !errors.Is(err, umbel.ErrNotFound) || got != nil {
			t.Error(got, err)
		}
		if _, err := read(t, client.Attach(c, double, "").Watch(t.Context()), noCounts); !errors.Is(err, umbel.ErrInvalid) {
			t.Error(err)
		}
		run := open(t, &fake{}, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 75*time.Second)
		defer cancel()
		began := time.Now()
		got, err := read(t, run.Watch(ctx), noCounts)
		if len(got) != 1 || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, umbel.ErrUnavailable) || time.Since(began) != 75*time.Second {
			t.Errorf("%v, %v after %v", got, err, time.Since(began))
		}
	})
}

// A watch outlives a restart of the server, and does not ask one that holds nothing back in a tight loop.
func TestWatchOutages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		run := open(t, f, 1)
		f.fault = away(10*time.Second, unavailable)
		time.AfterFunc(5*time.Second, func() { f.resolve("w", 0, "1", nil) })
		if got, err := read(t, run.Watch(t.Context()), noCounts); err != nil || len(got) != 1 || got[0].Completed != 1 {
			t.Error(got, err)
		}

		hasty := &impatient{fake: &fake{}}
		c, err := client.New(hasty, client.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if run, err = client.FanOut(t.Context(), c, double, upTo(1)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for range run.Watch(ctx) {
		}
		if n := hasty.count("Describe"); n > 22 {
			t.Errorf("%d calls in a second", n)
		}
	})
}
