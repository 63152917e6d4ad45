package umbel_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
)

// Each field is accepted at its bounds and refused by its own name beyond them.
func TestRetryPolicyBounds(t *testing.T) {
	t.Parallel()
	for _, p := range []umbel.RetryPolicy{
		{},
		{Initial: time.Millisecond, Cap: time.Millisecond, Factor: 1, Jitter: 1, MaxAttempts: 1},
		{Initial: umbel.MaxDelay, Cap: umbel.MaxDelay, Factor: 1000, MaxAttempts: umbel.MaxAttempts},
		{Cap: 10 * time.Millisecond}, // the first wait follows
		{NonRetryable: slices.Repeat([]string{"t"}, 64)},
	} {
		if err := p.Validate(); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
	for field, policies := range map[string][]umbel.RetryPolicy{
		"retry initial":  {{Initial: -1}, {Initial: 1}, {Initial: umbel.MaxDelay + time.Millisecond}},
		"retry cap":      {{Cap: -time.Second}, {Initial: time.Minute, Cap: time.Second}, {Cap: umbel.MaxDelay + time.Millisecond}},
		"retry factor":   {{Factor: 0.99}, {Factor: 1000.1}, {Factor: -1}, {Factor: math.NaN()}, {Factor: math.Inf(1)}},
		"retry jitter":   {{Jitter: -0.1}, {Jitter: 1.1}, {Jitter: math.NaN()}, {Jitter: math.Inf(-1)}},
		"retry attempts": {{MaxAttempts: -1}, {MaxAttempts: umbel.MaxAttempts + 1}},

		"retry non-retryable types": {{NonRetryable: slices.Repeat([]string{"t"}, 65)}},
		"retry non-retryable type":  {{NonRetryable: []string{""}}},
	} {
		for _, p := range policies {
			e, ok := errors.AsType[*umbel.Error](p.Validate())
			if !ok || e.Field != field {
				t.Errorf("%+v: %v, want an error about %s", p, e, field)
			}
		}
	}
}

// Waits grow to the cap, are whole milliseconds, and leave it by the jitter only, whatever the attempt.
func TestRetryDelay(t *testing.T) {
	t.Parallel()
	even := umbel.RetryPolicy{Jitter: 1e-9}
	for attempt, want := range map[int]time.Duration{
		1: time.Second, 2: 2 * time.Second, 7: 64 * time.Second, 8: 100 * time.Second, umbel.MaxAttempts: 100 * time.Second,
	} {
		if got := even.Delay(attempt, 0.5); got != want {
			t.Errorf("after attempt %d: %v, want %v", attempt, got, want)
		}
	}
	if low, high := (umbel.RetryPolicy{}).Delay(1, 0), (umbel.RetryPolicy{}).Delay(1, 1); low != 800*time.Millisecond || high != 1200*time.Millisecond {
		t.Errorf("from %v to %v", low, high)
	}
	longest := umbel.RetryPolicy{Initial: umbel.MaxDelay, Cap: umbel.MaxDelay, Factor: 1000, Jitter: 1}
	if got := longest.Delay(umbel.MaxAttempts, 1); got != umbel.MaxDelay {
		t.Errorf("the longest is %v", got)
	}
	if got := longest.Delay(1, 0); got != time.Millisecond {
		t.Errorf("the shortest is %v", got)
	}
}
