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

func noEvent(e umbel.Event) bool { return e.Seq == 0 && e.Type == "" }

func seqs(evs []umbel.Event) []int64 {
	var out []int64
	for _, e := range evs {
		out = append(out, e.Seq)
	}
	return out
}

// upToSeq is from, from+1, …, to.
func upToSeq(from, to int64) []int64 {
	var out []int64
	for ; from <= to; from++ {
		out = append(out, from)
	}
	return out
}

// Of two rows, events 1 to 5 are those of the start; then come two terminals, the verdict and the close.
func TestHistory(t *testing.T) {
	for _, page := range []int{0, 1, 2} {
		f := &fake{page: page, handle: echo}
		run := open(t, f, 2)
		a := newAdmin(t, f)
		for _, c := range []struct {
			q    client.HistoryQuery
			want []int64
		}{
			{client.HistoryQuery{}, upToSeq(1, 9)},
			{client.HistoryQuery{Run: run.ID(), From: 1}, upToSeq(1, 9)},
			{client.HistoryQuery{Follow: true}, upToSeq(1, 9)},
			{client.HistoryQuery{From: 4}, upToSeq(4, 9)},
			{client.HistoryQuery{From: 4, Follow: true}, upToSeq(4, 9)},
			{client.HistoryQuery{From: 10}, nil},
			{client.HistoryQuery{From: 99, Follow: true}, nil}, // nothing follows the close
			{client.HistoryQuery{Ordinal: new(int64(0))}, []int64{2, 3, 6}},
			{client.HistoryQuery{Ordinal: new(int64(1)), From: 5, Follow: true}, []int64{5, 7}},
			{client.HistoryQuery{Ordinal: new(int64(2))}, nil},
		} {
			got, err := read(t, a.History(t.Context(), "w", c.q), noEvent)
			if err != nil || !slices.Equal(seqs(got), c.want) {
				t.Errorf("%+v: %v, %v", c.q, seqs(got), err)
			}
		}
	}
}

func TestHistoryOfAnOpenRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		open(t, f, 2)
		a, began := newAdmin(t, f), time.Now()
		for _, from := range []int64{1, 4, 6, 20} {
			got, err := read(t, a.History(t.Context(), "w", client.HistoryQuery{From: from}), noEvent)
			if err != nil || !slices.Equal(seqs(got), upToSeq(from, 5)) || time.Since(began) != 0 {
				t.Errorf("from %d: %v, %v", from, seqs(got), err)
			}
		}
		for o := range int64(2) {
			time.AfterFunc(time.Duration(o+1)*time.Hour, func() { f.resolve("w", o, "1", nil) })
		}
		var when []time.Duration
		for ev, err := range a.History(t.Context(), "w", client.HistoryQuery{Follow: true, From: 5}) {
			if err != nil {
				t.Fatal(err)
			}
			if when = append(when, time.Since(began)/time.Hour); ev.Seq != int64(len(when))+4 {
				t.Errorf("event %d came after %d", ev.Seq, len(when)+3)
			}
		}
		if !slices.Equal(when, []time.Duration{0, 1, 2, 2, 2}) {
			t.Errorf("at hours %v", when)
		}
	})
}

// A reader beyond the head of an open run waits for what comes, and ends if it is closed before.
func TestHistoryFollowsFromBeyondTheHead(t *testing.T) {
	for _, c := range []struct {
		from int64
		want []int64
	}{{8, []int64{8, 9}}, {9, []int64{9}}, {10, nil}} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{}
			open(t, f, 2)
			for o := range int64(2) {
				time.AfterFunc(time.Hour, func() { f.resolve("w", o, "1", nil) })
			}
			began := time.Now()
			got, err := read(t, newAdmin(t, f).History(t.Context(), "w", client.HistoryQuery{From: c.from, Follow: true}), noEvent)
			if err != nil || !slices.Equal(seqs(got), c.want) || time.Since(began) != time.Hour {
				t.Errorf("from %d: %v, %v after %v", c.from, seqs(got), err, time.Since(began))
			}
		})
	}
}

// Without Follow it ends at the head as it was, however fast the run goes on.
func TestHistoryEndsAtTheHead(t *testing.T) {
	f := &fake{page: 2}
	open(t, f, 100)
	next := int64(0)
	f.fault = func(op string, _ int) (error, error) {
		if op == "History" {
			for range 3 {
				f.resolve("w", next, "1", nil)
				next++
			}
		}
		return nil, nil
	}
	got, err := read(t, newAdmin(t, f).History(t.Context(), "w", client.HistoryQuery{From: 195}), noEvent)
	if err != nil || !slices.Equal(seqs(got), upToSeq(195, 204)) {
		t.Error(seqs(got), err)
	}
}

func TestHistoryBreak(t *testing.T) {
	f := &fake{page: 2, handle: echo}
	open(t, f, 2)
	seq := newAdmin(t, f).History(t.Context(), "w", client.HistoryQuery{Follow: true})
	for range 2 {
		n := 0
		for range seq {
			if n++; n == 3 {
				break
			}
		}
	}
	if n := f.count("History"); n != 4 {
		t.Errorf("%d calls", n)
	}
}

func TestHistoryRefuses(t *testing.T) {
	f := &fake{}
	open(t, f, 1)
	for _, q := range []client.HistoryQuery{{From: -1}, {Ordinal: new(int64(-1))}, {Ordinal: new(int64(1 << 24))}} {
		got, err := read(t, newAdmin(t, f).History(t.Context(), "w", q), noEvent)
		if e, ok := errors.AsType[*umbel.Error](err); !ok || e.Code != umbel.CodeInvalid || e.WorkflowID != "w" || e.Field == "" || got != nil {
			t.Errorf("%+v: %v", q, err)
		}
	}
	if f.count("History") != 0 {
		t.Error("the server was asked")
	}
}

func TestHistoryContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		open(t, f, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 75*time.Second)
		defer cancel()
		began := time.Now()
		got, err := read(t, newAdmin(t, f).History(ctx, "w", client.HistoryQuery{Follow: true}), noEvent)
		if len(got) != 3 || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, umbel.ErrUnavailable) || time.Since(began) != 75*time.Second {
			t.Errorf("%v, %v after %v", seqs(got), err, time.Since(began))
		}
	})
}

// Redis is taken back while a reader follows: it says so, and does not pass other events off as the next ones.
func TestCase57HistoryNoticesARollback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		open(t, f, 4)
		for o := range int64(3) {
			f.resolve("w", o, "1", nil)
		}
		time.AfterFunc(time.Minute, func() { f.rollback("w", 1) })
		got, err := read(t, newAdmin(t, f).History(t.Context(), "w", client.HistoryQuery{Follow: true}), noEvent)
		if len(got) != 12 || !errors.Is(err, umbel.ErrCursorLost) {
			t.Errorf("%v, %v", seqs(got), err)
		}
	})
}

// hasty holds no reply back, as a server that is stopping, and brings some that break the contract.
type hasty struct {
	*fake
	skip int64
}

func (h *hasty) History(ctx context.Context, req umbel.HistoryRequest) (umbel.HistoryReply, error) {
	req.Wait = 0
	req.From += h.skip
	return h.fake.History(ctx, req)
}

func TestHistoryIsPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		open(t, f, 1)
		a, err := client.NewAdmin(&hasty{fake: f}, client.Config{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = read(t, a.History(ctx, "w", client.HistoryQuery{Follow: true}), noEvent)
		if n := f.count("History"); !errors.Is(err, context.DeadlineExceeded) || n > 22 {
			t.Errorf("%v after %d calls", err, n)
		}
	})
}

func TestHistoryWithAGap(t *testing.T) {
	f := &fake{}
	open(t, f, 1)
	a, err := client.NewAdmin(&hasty{fake: f, skip: 1}, client.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := read(t, a.History(t.Context(), "w", client.HistoryQuery{}), noEvent); !errors.Is(err, umbel.ErrInternal) || got != nil {
		t.Error(seqs(got), err)
	}
}
