package historytest

import (
	"context"
	"errors"
	"fmt"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/history"
)

func readCases() []testCase {
	return []testCase{
		{"ReadPages", readPages},
		{"ReadLimits", readLimits},
		{"EventsAreNotShared", eventsAreNotShared},
	}
}

// From any sequence number, with any limit, a page is that slice of the whole, however the events were
// written: in one batch, one by one, or with a dispatch.
func readPages(s *suite) {
	wf := flow()
	at := s.acquire(wf)
	s.append(wf, &at, umbel.Event{Type: umbel.WorkflowStarted, RunID: wf.RunID, Scheduled: 40})
	s.dispatch(wf, &at, mixed(13)...)
	s.complete(wf, &at, success(3, 1), history.Recorded)
	s.append(wf, &at, everyType(wf.RunID, s.now())[2:5]...)
	s.complete(wf, &at, failure(4, 1), history.Recorded)
	s.dispatch(wf, &at, items(1)...)
	s.dispatch(wf, &at, mixed(11)...)
	whole := s.all(wf)
	if int64(len(whole)) != at.Head {
		s.Fatalf("%d events, head %d", len(whole), at.Head)
	}
	for from := int64(1); from <= at.Head+3; from++ {
		for _, limit := range []int{1, 2, 3, 7, 26, 27, len(whole), len(whole) + 1, 10_000} {
			page, err := s.Store.Read(s.Context(), wf, from, limit)
			s.ok(err)
			first := min(int(from-1), len(whole))
			want := whole[first:min(first+limit, len(whole))]
			if d := diff(want, page); d != "" {
				s.Fatalf("read from %d, %d events (-want +got):\n%s", from, limit, d)
			}
			for i := range page {
				if !page[i].At.Equal(want[i].At) {
					s.Fatalf("event %d was recorded at %v and at %v", page[i].Seq, want[i].At, page[i].At)
				}
			}
		}
	}
}

func readLimits(s *suite) {
	wf := flow()
	at := s.acquire(wf)
	s.dispatch(wf, &at, items(3)...)
	for _, limit := range []int{0, -1, -1 << 40} {
		_, err := s.Store.Read(s.Context(), wf, 1, limit)
		s.refused(fmt.Sprintf("limit %d", limit), err, umbel.ErrInvalid)
	}
	for _, from := range []int64{7, 8, 1 << 30, history.MaxSeq} {
		page, err := s.Store.Read(s.Context(), wf, from, 10)
		s.ok(err)
		if len(page) != 0 {
			s.Errorf("read from %d after the head 6: %+v", from, page)
		}
	}
}

func eventsAreNotShared(s *suite) {
	wf := flow()
	at := s.acquire(wf)
	it := history.Item{ActivityType: "act", Input: text("before")}
	s.dispatch(wf, &at, it)
	c := history.Completion{Attempt: 1, Result: text("before")}
	s.complete(wf, &at, c, history.Recorded)
	copy(it.Input.Data, "after!")
	copy(c.Result.Data, "after!")
	for range 2 {
		events := s.all(wf)
		if got := string(events[0].Input.Data) + string(events[2].Result.Data); got != "beforebefore" {
			s.Fatalf("what is stored became %q", got)
		}
		copy(events[0].Input.Data, "after!")
		copy(events[2].Result.Data, "after!")
	}
}

func limitCases() []testCase {
	return []testCase{
		{"MaxSeq", maxSeq},
		{"ContextHasEnded", contextHasEnded},
	}
}

// Sequence numbers are checked: an append that would pass the largest is refused and changes nothing.
func maxSeq(s *suite) {
	if s.SetHead == nil {
		s.Log("this backend cannot set a head")
		return
	}
	wf := flow()
	at := s.acquire(wf)
	s.dispatch(wf, &at, items(3)...)
	set := func(n int64) {
		s.SetHead(s.T, wf, n)
		at.Head = n
	}
	unchanged := func(f func()) {
		before := fmt.Sprint(s.head(wf), s.scan(wf), s.dump())
		f()
		if after := fmt.Sprint(s.head(wf), s.scan(wf), s.dump()); after != before {
			s.Errorf("a refused append changed %s to %s", before, after)
		}
	}
	set(history.MaxSeq - 3)
	unchanged(func() {
		_, err := s.Store.Append(s.Context(), wf, at, []umbel.Event{started(0, 2), started(0, 3), started(0, 4), started(0, 5)})
		s.refused("4 events where 3 fit", err, umbel.ErrLimit)
		_, err = s.Store.Dispatch(s.Context(), wf, at, items(2))
		s.refused("a dispatch of 2 where 3 events fit", err, umbel.ErrLimit)
		_, err = s.Store.Dispatch(s.Context(), wf, at, items(5000))
		s.refused("a dispatch of 5,000", err, umbel.ErrLimit)
	})
	s.complete(wf, &at, success(0, 1), history.Recorded)
	s.dispatch(wf, &at, items(1)...)
	if head := s.head(wf); head != history.MaxSeq {
		s.Fatalf("head is %d, want %d", head, int64(history.MaxSeq))
	}
	page, err := s.Store.Read(s.Context(), wf, history.MaxSeq-1, 10)
	s.ok(err)
	want := dispatched(3, items(1)...)
	for i := range want {
		want[i].Seq = history.MaxSeq - 1 + int64(i)
	}
	if d := diff(want, page); d != "" {
		s.Errorf("the last events (-want +got):\n%s", d)
	}
	unchanged(func() {
		_, err := s.Store.Append(s.Context(), wf, at, []umbel.Event{started(0, 2)})
		s.refused("one event at the end", err, umbel.ErrLimit)
		_, err = s.Store.Dispatch(s.Context(), wf, at, items(1))
		s.refused("a dispatch at the end", err, umbel.ErrLimit)
		_, _, err = s.Store.Complete(s.Context(), wf, at, success(1, 1))
		s.refused("a completion at the end", err, umbel.ErrLimit)
	})
	s.complete(wf, &at, success(0, 1), history.Dropped) // it needs no number
}

func (s *suite) dump() string {
	if s.Dump == nil {
		return ""
	}
	return s.Dump(s.T)
}

// When the context has ended, every call says so, as an *umbel.Error that wraps the context's.
func contextHasEnded(s *suite) {
	wf := flow()
	at := s.acquire(wf)
	s.dispatch(wf, &at, items(2)...)
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	for name, call := range map[string]func() error{
		"acquire": func() error {
			_, err := s.Store.Acquire(ctx, wf)
			return err
		},
		"append": func() error {
			_, err := s.Store.Append(ctx, wf, at, []umbel.Event{started(0, 2)})
			return err
		},
		"dispatch": func() error {
			_, err := s.Store.Dispatch(ctx, wf, at, items(1))
			return err
		},
		"complete": func() error {
			_, _, err := s.Store.Complete(ctx, wf, at, success(0, 1))
			return err
		},
		"head": func() error {
			_, err := s.Store.Head(ctx, wf)
			return err
		},
		"read": func() error {
			_, err := s.Store.Read(ctx, wf, 1, 1)
			return err
		},
	} {
		err := call()
		s.refused(name, err, umbel.ErrUnavailable)
		if !errors.Is(err, context.Canceled) {
			s.Errorf("%s: %v does not wrap the context's error", name, err)
		}
	}
	at.Head = s.head(wf)
	s.dispatch(wf, &at, items(1)...)
}
