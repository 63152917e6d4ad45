package umbel

import (
	"math"
	"slices"
	"strconv"
	"time"
)

// RetryPolicy says when a failed attempt is tried again. It belongs to the contract: it is set with the
// activity or at the start, travels with the run, and the server applies it. A zero field means its default.
type RetryPolicy struct {
	// Initial is the wait before the second attempt. Default 1 s, at most [MaxDelay].
	Initial time.Duration
	// Cap is the longest wait. Default 100 s, at least Initial, at most [MaxDelay].
	Cap time.Duration
	// Factor multiplies the wait after each attempt. Default 2, from 1 to 1000.
	Factor float64
	// Jitter spreads each wait evenly by plus and minus this share of it. Default 0.2, at most 1; a value
	// such as 1e-9 is as good as none.
	Jitter float64
	// MaxAttempts is how often a row is tried in all. Default 10, at most [MaxAttempts].
	MaxAttempts int
	// NonRetryable lists error types (see [Typed]) that end the row at once. At most 64, each a name.
	NonRetryable []string
}

// DefaultRetry is the policy that the zero RetryPolicy stands for.
var DefaultRetry = RetryPolicy{Initial: time.Second, Cap: 100 * time.Second, Factor: 2, Jitter: 0.2, MaxAttempts: 10}

const (
	maxFactor           = 1000
	maxNonRetryableType = 64
)

// WithDefaults returns p with its zero fields set.
func (p RetryPolicy) WithDefaults() RetryPolicy {
	d := DefaultRetry
	if p.Initial == 0 {
		p.Initial = d.Initial
		if p.Cap > 0 { // a negative one is refused by its own name
			p.Initial = min(d.Initial, p.Cap)
		}
	}
	if p.Cap == 0 {
		p.Cap = max(d.Cap, p.Initial)
	}
	if p.Factor == 0 {
		p.Factor = d.Factor
	}
	if p.Jitter == 0 {
		p.Jitter = d.Jitter
	}
	if p.MaxAttempts == 0 {
		p.MaxAttempts = d.MaxAttempts
	}
	return p
}

// Validate reports the first field of p, defaults applied, that is out of its range, as a [CodeInvalid] error.
func (p RetryPolicy) Validate() error {
	p = p.WithDefaults()
	if err := ValidateDuration("retry initial", p.Initial, time.Millisecond, MaxDelay); err != nil {
		return err
	}
	if err := ValidateDuration("retry cap", p.Cap, p.Initial, MaxDelay); err != nil {
		return err
	}
	if !(p.Factor >= 1 && p.Factor <= maxFactor) { // so written, NaN is refused
		return Invalid("retry factor", formatFloat(p.Factor), "must be from 1 to 1000")
	}
	if !(p.Jitter >= 0 && p.Jitter <= 1) {
		return Invalid("retry jitter", formatFloat(p.Jitter), "must be from 0 to 1")
	}
	if p.MaxAttempts < 1 || p.MaxAttempts > MaxAttempts {
		return Invalid("retry attempts", strconv.Itoa(p.MaxAttempts), "must be from 1 to "+strconv.Itoa(MaxAttempts))
	}
	if len(p.NonRetryable) > maxNonRetryableType {
		return Limit("retry non-retryable types", int64(len(p.NonRetryable)), "types", maxNonRetryableType)
	}
	for _, t := range p.NonRetryable {
		if err := ValidateName("retry non-retryable type", t); err != nil {
			return err
		}
	}
	return nil
}

// Delay returns how long to wait after attempt (from 1) failed; u in [0, 1) is the draw that places it within
// the jitter. The result is a whole number of milliseconds, at least 1 ms and never above Cap by more than
// the jitter.
func (p RetryPolicy) Delay(attempt int, u float64) time.Duration {
	p = p.WithDefaults()
	d := min(float64(p.Initial)*math.Pow(p.Factor, float64(attempt-1)), float64(p.Cap))
	d *= 1 + p.Jitter*(2*u-1)
	ms := math.Round(min(d, float64(MaxDelay)) / float64(time.Millisecond))
	return time.Duration(max(ms, 1)) * time.Millisecond
}

// Retries reports whether a row whose attempt (from 1) failed with f is tried again.
func (p RetryPolicy) Retries(attempt int, f *Failure) bool {
	p = p.WithDefaults()
	return attempt < p.MaxAttempts && !f.NonRetryable && !slices.Contains(p.NonRetryable, f.Type)
}

func formatFloat(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
