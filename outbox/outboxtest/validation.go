package outboxtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/outbox"
)

func validationCases() []testCase {
	return []testCase{
		{"AppendValidates", appendValidates},
		{"AppendAcceptsTheLimits", appendAcceptsTheLimits},
		{"KeysAreValidated", keysAreValidated},
		{"ScopesAreValidated", scopesAreValidated},
		{"AttemptsAreValidated", attemptsAreValidated},
	}
}

// badNames are what no name may be, but for the empty one.
func badNames() []string {
	return []string{
		strings.Repeat("x", umbel.MaxNameBytes+1), strings.Repeat("é", umbel.MaxNameBytes/2+1),
		"a\x00", "a\nb", "\t", "\x7f", "\u0085", "\xff", "a\xc3", "\xed\xa0\x80",
	}
}

// Everything is validated before anything is written: one bad row of a call, and none of it appears.
func appendValidates(s *suite) {
	type bad struct {
		what string
		edit func(*outbox.Row)
	}
	cases := []bad{
		{"no workflow ID", func(r *outbox.Row) { r.WorkflowID = "" }},
		{"no activity type", func(r *outbox.Row) { r.ActivityType = "" }},
		{"ordinal -1", func(r *outbox.Row) { r.Ordinal = -1 }},
		{"ordinal -2^63", func(r *outbox.Row) { r.Ordinal = -1 << 63 }},
		{"ordinal 2^24", func(r *outbox.Row) { r.Ordinal = umbel.MaxOrdinal + 1 }},
		{"ordinal 2^53+1", func(r *outbox.Row) { r.Ordinal = 1<<53 + 1 }},
		{"ordinal 2^63-1", func(r *outbox.Row) { r.Ordinal = 1<<63 - 1 }},
		{"attempt -1", func(r *outbox.Row) { r.Attempt = -1 }},
		{"attempt 65", func(r *outbox.Row) { r.Attempt = umbel.MaxAttempts + 1 }},
		{"status claimed", func(r *outbox.Row) { r.Status = outbox.Claimed }},
		{"status done", func(r *outbox.Row) { r.Status = outbox.Done }},
		{"status failed", func(r *outbox.Row) { r.Status = outbox.Failed }},
		{"status cancelled", func(r *outbox.Row) { r.Status = outbox.Cancelled }},
		{"no such status", func(r *outbox.Row) { r.Status = "ready" }},
		{"a payload that is too large", func(r *outbox.Row) { r.Input.Data = make([]byte, umbel.MaxPayloadBytes+1) }},
	}
	for _, name := range badNames() {
		for field, edit := range map[string]func(*outbox.Row){
			"namespace":     func(r *outbox.Row) { r.Namespace = name },
			"workflow ID":   func(r *outbox.Row) { r.WorkflowID = umbel.WorkflowID(name) },
			"run ID":        func(r *outbox.Row) { r.RunID = umbel.RunID(name) },
			"task queue":    func(r *outbox.Row) { r.TaskQueue = name },
			"node":          func(r *outbox.Row) { r.Node = name },
			"activity type": func(r *outbox.Row) { r.ActivityType = name },
			"content type":  func(r *outbox.Row) { r.Input.ContentType = name },
		} {
			cases = append(cases, bad{fmt.Sprintf("%s %.20q", field, name), edit})
		}
	}
	s.append(fanOut("old", 2)...)
	s.unchanged("append of invalid rows", func() {
		for _, c := range cases {
			r := row("w", 3)
			c.edit(&r)
			rows := append(fanOut("w", 3), row("other", 0), row("old", 2), r)
			s.refused(c.what, s.Store.Append(s.Context(), rows), umbel.ErrInvalid, umbel.ErrLimit)
		}
	})
	if rows := s.scan("", "w"); len(rows) != 0 {
		s.Errorf("a refused append left %v", keysOf(rows))
	}
	s.wantKeys("claim", s.claim(10), fanOut("old", 2))
}

func appendAcceptsTheLimits(s *suite) {
	long := strings.Repeat("é", umbel.MaxNameBytes/2) + "x"
	r := outbox.Row{
		Namespace: long, WorkflowID: umbel.WorkflowID(long), RunID: "run", TaskQueue: long, Node: long, ActivityType: long,
		Input: umbel.Payload{ContentType: long, Data: bytes.Repeat([]byte("x"), 100)}, Status: outbox.Pending,
	}
	s.append(r)
	got := s.claimScoped(outbox.Scope{Namespace: long, TaskQueue: long, Node: long}, 1)
	s.wantKeys("claim", got, []outbox.Row{r})
	r.Status = outbox.Claimed
	s.wantRow("claim", withoutTime(got[0]), withoutTime(r))
}

func keysAreValidated(s *suite) {
	s.append(fanOut("w", 2)...)
	bad := []outbox.Key{{Namespace: "default"}, key("w", -1), key("w", -1<<63), key("w", umbel.MaxOrdinal+1), key("w", 1<<53+1), key("w", 1<<63-1)}
	for _, name := range badNames() {
		bad = append(bad, outbox.Key{Namespace: name, WorkflowID: "w"}, outbox.Key{WorkflowID: umbel.WorkflowID(name)})
	}
	s.unchanged("calls with an invalid key", func() {
		for _, k := range bad {
			what := fmt.Sprintf("key %.40q", fmt.Sprint(k))
			for _, e := range ends() {
				s.refused(e.name+" "+what, e.do(s.Store, s.Context(), k), umbel.ErrInvalid)
			}
			s.refused("retry "+what, s.Store.Retry(s.Context(), k, 1, s.now()), umbel.ErrInvalid)
			_, err := s.Store.Get(s.Context(), k)
			s.refused("get "+what, err, umbel.ErrInvalid)
			r := row(k.WorkflowID, k.Ordinal)
			r.Namespace = k.Namespace
			s.refused("re-arm "+what, s.Store.Rearm(s.Context(), []outbox.Row{row("w", 0), r}), umbel.ErrInvalid)
			if k.Ordinal != 0 {
				continue
			}
			n := 0
			for _, err := range s.Store.Scan(s.Context(), k.Namespace, k.WorkflowID) {
				s.refused("scan "+what, err, umbel.ErrInvalid)
				n++
			}
			if n != 1 {
				s.Errorf("scan %s yielded %d times, want its error once", what, n)
			}
		}
	})
}

func scopesAreValidated(s *suite) {
	s.append(fanOut("w", 2)...)
	s.unchanged("claims in an invalid scope", func() {
		for _, name := range badNames() {
			for _, scope := range []outbox.Scope{{Namespace: name}, {TaskQueue: name}, {Node: name}} {
				_, err := s.Store.ClaimScoped(s.Context(), scope, 1)
				s.refused(fmt.Sprintf("scope %.40q", fmt.Sprint(scope)), err, umbel.ErrInvalid)
			}
		}
	})
}

func attemptsAreValidated(s *suite) {
	s.append(fanOut("w", 2)...)
	s.unchanged("retry with an invalid attempt", func() {
		for _, attempt := range []int{-1, umbel.MaxAttempts, 1 << 31, 1 << 53, -1 << 63} {
			for _, k := range []outbox.Key{key("w", 0), key("absent", 0)} {
				s.refused(fmt.Sprintf("attempt %d", attempt), s.Store.Retry(s.Context(), k, attempt, s.now()), umbel.ErrInvalid, umbel.ErrLimit)
			}
		}
	})
}

func contextCases() []testCase {
	return []testCase{{"ContextHasEnded", contextHasEnded}}
}

// When the context has ended, every call says so, as an *umbel.Error that wraps the context's.
func contextHasEnded(s *suite) {
	s.append(fanOut("w", 2)...)
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	calls := map[string]func() error{
		"append": func() error { return s.Store.Append(ctx, fanOut("v", 1)) },
		"claim": func() error {
			_, err := s.Store.Claim(ctx, 1)
			return err
		},
		"claim scoped": func() error {
			_, err := s.Store.ClaimScoped(ctx, outbox.Scope{}, 1)
			return err
		},
		"re-arm stale": func() error {
			_, err := s.Store.RearmStale(ctx, s.now().Add(time.Hour), 1, s.now())
			return err
		},
		"re-arm":   func() error { return s.Store.Rearm(ctx, fanOut("w", 1)) },
		"complete": func() error { return s.Store.Complete(ctx, key("w", 0)) },
		"fail":     func() error { return s.Store.Fail(ctx, key("w", 0)) },
		"cancel":   func() error { return s.Store.Cancel(ctx, key("w", 0)) },
		"retry":    func() error { return s.Store.Retry(ctx, key("w", 0), 1, s.now()) },
		"get": func() error {
			_, err := s.Store.Get(ctx, key("w", 0))
			return err
		},
		"scan": func() error {
			var last error
			for _, err := range s.Store.Scan(ctx, "", "w") {
				last = err
			}
			return last
		},
	}
	for name, call := range calls {
		err := call()
		s.refused(name, err, umbel.ErrUnavailable)
		if !errors.Is(err, context.Canceled) {
			s.Errorf("%s: %v does not wrap the context's error", name, err)
		}
	}
	s.wantKeys("claim afterwards", s.claim(10), fanOut("w", 2))
}
