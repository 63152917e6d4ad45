package client_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
)

func TestOrderedWaitsForItsTurn(t *testing.T) {
	for _, page := range []int{0, 1, 2} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{page: page}
			run := open(t, f, 4)
			began := time.Now()
			go func() {
				for _, o := range []int64{2, 0, 3, 1} {
					time.Sleep(time.Minute)
					f.resolve("w", o, "1", nil)
				}
			}()
			var got []int64
			var when []time.Duration
			for r, err := range run.Results(t.Context(), client.Ordered()) {
				if err != nil {
					t.Fatal(err)
				}
				got, when = append(got, r.Ordinal), append(when, time.Since(began)/time.Minute)
			}
			if !slices.Equal(got, []int64{0, 1, 2, 3}) || !slices.Equal(when, []time.Duration{2, 4, 4, 4}) {
				t.Errorf("%v at minutes %v", got, when)
			}
		})
	}
}

// mixed is a closed run of which 1, 4 and 6 failed and 5 was cancelled, resolved from the last to the first.
func mixed(t *testing.T, f *fake) *client.Run[int] {
	t.Helper()
	run := open(t, f, 8)
	for o := int64(7); o >= 0; o-- {
		var err error
		switch o {
		case 1, 4, 6:
			err = errors.New("no")
		case 5:
			err = umbel.ErrCancelled
		}
		f.resolve("w", o, "1", err)
	}
	return run
}

func TestResultOptionsTogether(t *testing.T) {
	for _, page := range []int{0, 1, 3} {
		run := mixed(t, &fake{page: page})
		for name, c := range map[string]struct {
			opts []client.ResultOption
			want []int64
		}{
			"none":    {nil, []int64{7, 6, 5, 4, 3, 2, 1, 0}},
			"ordered": {[]client.ResultOption{client.Ordered()}, []int64{0, 1, 2, 3, 4, 5, 6, 7}},
			"failed":  {[]client.ResultOption{client.OnlyFailed()}, []int64{6, 4, 1}},
			"both":    {[]client.ResultOption{client.OnlyFailed(), client.Ordered()}, []int64{1, 4, 6}},
		} {
			all, err := collect(t, run, c.opts...)
			if err != nil || !slices.Equal(ordinals(all), c.want) {
				t.Errorf("%s, pages of %d: %v, %v", name, page, ordinals(all), err)
			}
			for i, r := range all {
				rest, err := collect(t, run, append(c.opts, client.From(r.Cursor), client.WithInputs())...)
				if err != nil || !slices.Equal(ordinals(rest), c.want[i+1:]) {
					t.Errorf("%s, pages of %d, from %d: %v, %v", name, page, r.Ordinal, ordinals(rest), err)
				}
				if len(rest) > 0 && string(rest[0].Input.Data) == "" {
					t.Errorf("%s: no input came with %d", name, rest[0].Ordinal)
				}
			}
		}
	}
}

// The server leaves the others out: what it sends is only what is asked for.
func TestOnlyFailedIsAskedOfTheServer(t *testing.T) {
	f := &fake{}
	if _, err := collect(t, mixed(t, f), client.OnlyFailed()); err != nil {
		t.Fatal(err)
	}
	for _, r := range f.requests {
		if r, ok := r.(umbel.ResultsRequest); ok && r.Status != umbel.StatusFailed {
			t.Errorf("asked for status %q", r.Status)
		}
	}
}

func TestCursorOfTheOtherOrder(t *testing.T) {
	run := mixed(t, &fake{})
	for _, order := range [][]client.ResultOption{nil, {client.Ordered()}} {
		all, err := collect(t, run, order...)
		if err != nil {
			t.Fatal(err)
		}
		other := []client.ResultOption{client.From(all[2].Cursor)}
		if order == nil {
			other = append(other, client.Ordered())
		}
		if rs, err := collect(t, run, other...); !errors.Is(err, umbel.ErrInvalid) || rs != nil {
			t.Error(rs, err)
		}
	}
}

func TestOrderedBreakAndRangeAgain(t *testing.T) {
	seq := mixed(t, &fake{page: 3}).Results(t.Context(), client.Ordered())
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

// Redis is taken back: the order stays, and nothing comes twice.
func TestCase57OrderedSurvivesARollback(t *testing.T) {
	for _, from := range []int64{0, 1} {
		f := &fake{page: 1}
		run := open(t, f, 5)
		for o := range int64(4) {
			f.resolve("w", o, "1", nil)
		}
		opts := []client.ResultOption{client.Ordered()}
		if from > 0 {
			first, err := collectFirst(t, run, opts...)
			if err != nil {
				t.Fatal(err)
			}
			opts = append(opts, client.From(first.Cursor))
		}
		var got []int64
		for r, err := range run.Results(t.Context(), opts...) {
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, r.Ordinal); r.Ordinal != 2 {
				continue
			}
			f.rollback("w", 1) // the cursor is lost
			time.AfterFunc(10*time.Millisecond, func() {
				for _, o := range []int64{4, 3, 2, 1} {
					f.resolve("w", o, "1", nil)
				}
			})
		}
		if want := []int64{0, 1, 2, 3, 4}[from:]; !slices.Equal(got, want) {
			t.Errorf("from %d: %v", from, got)
		}
	}
}

func TestCase57OnlyFailedSurvivesARollback(t *testing.T) {
	no := errors.New("no")
	f := &fake{page: 1}
	run := open(t, f, 4)
	for o := range int64(3) {
		f.resolve("w", o, "", no)
	}
	var got []int64
	for r, err := range run.Results(t.Context(), client.OnlyFailed()) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, r.Ordinal); len(got) == 3 {
			f.rollback("w", 1)
			time.AfterFunc(10*time.Millisecond, func() {
				f.resolve("w", 3, "", no)
				f.resolve("w", 2, "1", nil) // it has been yielded as failed, and stays that
				f.resolve("w", 1, "", no)
			})
		}
	}
	if !slices.Equal(got, []int64{0, 1, 2, 3}) {
		t.Error(got)
	}
}

func collectFirst[Out any](t *testing.T, run *client.Run[Out], opts ...client.ResultOption) (umbel.Result[Out], error) {
	t.Helper()
	for r, err := range run.Results(t.Context(), opts...) {
		return r, err
	}
	return umbel.Result[Out]{}, nil
}
