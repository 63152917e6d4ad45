package stack

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/outbox/outboxtest"
)

// dump is all that is kept, but for when shards were swept.
func (s *stack) dump() string {
	text := outboxtest.Keyspace{Redis: s.redis.Client, Prefix: s.redis.Prefix}.Dump(s.t)
	return strings.Join(slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool {
		return strings.Contains(line, ":sweep: ")
	}), "\n")
}

// refusal is a call with one bad value, which the error must name, with the rule that it breaks.
type refusal struct {
	op    string
	value string // what is wrong, for the name of the subtest
	field string // what the error's Field must hold
	rule  string // what the error's Reason must hold
	call  func(ctx context.Context, e umbel.Engine) error
}

const (
	tooLong = umbel.MaxNameBytes + 1
	minimum = time.Duration(math.MinInt64)
	maximum = time.Duration(math.MaxInt64)
)

// badNames are values that no name may have, with the rule that each breaks.
var badNames = map[string]string{
	"":                            "must not be empty",
	strings.Repeat("n", tooLong):  "at most 255 bytes",
	strings.Repeat("ü", 128):      "at most 255 bytes",
	"a\x00b":                      "control characters",
	"a\nb":                        "control characters",
	"a\u0085b":                    "control characters",
	"a\xffb":                      "valid UTF-8",
	"\xed\xa0\x80 is a surrogate": "valid UTF-8",
}

var badDurations = map[time.Duration]string{
	-1: "must be from", -time.Second: "must be from", minimum: "must be from", maximum: "must be from",
	umbel.MaxDelay + time.Millisecond: "must be from", 1_500_000 * time.Nanosecond: "whole number of milliseconds",
	333_333_333 * time.Nanosecond: "whole number of milliseconds",
}

// names are the refusals of a field that holds a name, or nothing if empty is allowed.
func names(op, field string, empty bool, call func(ctx context.Context, e umbel.Engine, v string) error) []refusal {
	var out []refusal
	for v, rule := range badNames {
		if v == "" && empty {
			continue
		}
		out = append(out, refusal{op, field + " " + v, field, rule, func(ctx context.Context, e umbel.Engine) error { return call(ctx, e, v) }})
	}
	return out
}

func durations(op, field string, call func(ctx context.Context, e umbel.Engine, v time.Duration) error) []refusal {
	var out []refusal
	for v, rule := range badDurations {
		out = append(out, refusal{op, field + " " + v.String(), field, rule, func(ctx context.Context, e umbel.Engine) error { return call(ctx, e, v) }})
	}
	return out
}

// Must show 8: every operation refuses every bad value by name, says the rule, and has written nothing.
func TestBadValuesAreRefused(t *testing.T) {
	onMini(t, func(s *stack) { refuseAll(s, s.open()) })
}

// The same on a real Redis, whose scripts are another engine's.
func TestBadValuesAreRefusedOnRedis(t *testing.T) {
	t.Parallel()
	onReal(t, func(s *stack) { refuseAll(s, s.open()) })
}

// Must show 7: so do calls over the network, of values that no message can hold too, with the same words.
func TestBadValuesAreRefusedOverTheNetwork(t *testing.T) {
	for name, h2 := range map[string]bool{"http1": false, "h2c": true} {
		t.Run(name, func(t *testing.T) {
			onMini(t, func(s *stack) { refuseAll(s, s.remote(s.open(), h2)) })
		})
	}
}

func refuseAll(s *stack, e umbel.Engine) {
	s.start(e, "w", rows(5))
	held := s.claim(e, 2)
	s.finish(e, held[:1])
	time.Sleep(300 * time.Millisecond) // until the claim is marked as delivered
	good := held[1]
	table := slices.Concat(startRefusals(), policyRefusals(), workerRefusals(good), readRefusals())
	before := s.dump()
	for _, r := range table {
		err := r.call(s.t.Context(), e)
		got, ok := errors.AsType[*umbel.Error](err)
		switch {
		case !ok:
			s.t.Errorf("%s, %.60q: %v, want an *umbel.Error", r.op, r.value, err)
		case got.Code != umbel.CodeInvalid && got.Code != umbel.CodeLimit || !umbel.SafeToRetry(err):
			s.t.Errorf("%s, %.60q: code %s, safe to retry: %t", r.op, r.value, got.Code, umbel.SafeToRetry(err))
		case !strings.Contains(got.Field, r.field) || !strings.Contains(got.Reason, r.rule) || got.Value == "":
			s.t.Errorf("%s, %.60q: field %q, value %q, reason %q; want %q and %q", r.op, r.value, got.Field, got.Value, got.Reason, r.field, r.rule)
		}
		if after := s.dump(); after != before {
			s.t.Fatalf("%s, %.60q: something was written:\n%s\n---\n%s", r.op, r.value, before, after)
		}
	}
	s.t.Logf("%d refusals", len(table))
	s.verdict(e, done(good), umbel.Recorded)
	s.finish(e, s.claim(e, 3))
}
