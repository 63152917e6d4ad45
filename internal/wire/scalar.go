package wire

import (
	"math"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/umbelhq/umbel"
)

// valid is s as a message may hold it. Only texts for people are replaced so; names are refused where they break
// the rule.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// count holds a number that is never negative in a message's 32 bits. What does not fit stays out of range.
func count[N int | int64](n N) uint32 {
	if n < 0 || int64(n) > math.MaxUint32 {
		return math.MaxUint32
	}
	return uint32(n)
}

// number holds a number in a message's 32 bits. What does not fit stays out of range.
func number(n int) int32 { return int32(min(max(n, math.MinInt32), math.MaxInt32)) }

// duration leaves out 0: that is what one which is absent means.
func duration(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}

// instant leaves out the zero time.
func instant(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// opaque is a token or a cursor as a message may hold it: what is no text was never issued, and the server says so.
func opaque[T ~string](s T) string { return valid(string(s)) }

// reader reads what a message can hold and a value cannot, and keeps the first such error.
type reader struct{ bad *umbel.Error }

// err is that error. It is a call, so that it comes after those before it in a return statement.
func (r *reader) err() error {
	if r.bad == nil {
		return nil
	}
	return r.bad
}

// duration reads a length of time; one that Go cannot hold becomes the longest, which every limit refuses.
func (r *reader) duration(field string, d *durationpb.Duration) time.Duration {
	if d == nil {
		return 0
	}
	if err := d.CheckValid(); err != nil && r.bad == nil {
		r.bad = umbel.Invalid(field, d.String(), "must be a duration that protobuf allows: up to 10,000 years, seconds and nanos of one sign")
	}
	return d.AsDuration()
}

func (r *reader) instant(field string, t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	if err := t.CheckValid(); err != nil && r.bad == nil {
		r.bad = umbel.Invalid(field, t.AsTime().Format(time.RFC3339), "must be from the year 1970 to 9999")
	}
	return t.AsTime()
}

// or is what an optional field says, or what it means to leave it out.
func or[T any](p *T, absent T) T {
	if p == nil {
		return absent
	}
	return *p
}

func namespace(p *string) string { return or(p, umbel.DefaultNamespace) }
