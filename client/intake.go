package client

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/umbelhq/umbel"
)

// entry is an item on its way into a start.
type entry struct {
	row    umbel.StagedRow
	policy umbel.TypePolicy // of the row's type; the zero one if the start declared it
	err    error            // why its input could not be encoded
}

// intake checks the items of one start, applies its defaults to them and counts and digests them. What it
// admits is in order, so that nothing invalid is ever sent.
type intake struct {
	cfg    *startConfig
	digest *digest

	rows, bytes int64

	routes map[route]struct{}
	last   route // of the row before: mostly that of the next one, too

	policies []umbel.TypePolicy // with defaults, one a type
	encoded  map[string]string  // by type, to compare
	scratch  []byte
}

// route tells rows apart that wait in different places.
type route struct{ activityType, taskQueue, node string }

func newIntake(cfg *startConfig) *intake {
	return &intake{
		cfg: cfg, digest: newDigest(),
		routes: map[route]struct{}{}, encoded: map[string]string{},
	}
}

// declare adds the policy of an activity type. Another policy for the same type is refused.
func (in *intake) declare(p umbel.TypePolicy) error {
	p = in.cfg.policy(p)
	if err := p.Validate(); err != nil {
		return err
	}
	in.scratch = appendPolicy(in.scratch[:0], p)
	switch old, ok := in.encoded[p.Type]; {
	case !ok:
		in.encoded[p.Type] = string(in.scratch)
		in.policies = append(in.policies, p)
	case old != string(in.scratch):
		return umbel.Invalid("activity type", p.Type,
			"has two calls with different retry policies or start-to-close; one type has one policy in a start")
	}
	return nil
}

// admit returns the row as it will be staged, or the rule that it breaks.
func (in *intake) admit(e entry) (umbel.StagedRow, error) {
	row := e.row
	if e.err != nil {
		return row, &umbel.Error{
			Code: umbel.CodeInvalid, Field: "input", Value: "of " + row.Type,
			Reason: "cannot be encoded", NotApplied: true, Err: e.err,
		}
	}
	if in.rows >= in.cfg.maxRows {
		return row, umbel.Limit("fan-out", in.rows+1, "rows of a run", in.cfg.maxRows)
	}
	if e.policy.Type != "" {
		if err := in.declare(e.policy); err != nil {
			return row, err
		}
	}
	row.TaskQueue = cmp.Or(row.TaskQueue, in.cfg.taskQueue)
	row.Node = cmp.Or(row.Node, in.cfg.node)
	if err := row.Validate(); err != nil {
		return row, err
	}
	if err := umbel.ValidateDuration("delay with start-after", row.Delay+in.cfg.startAfter, 0, umbel.MaxDelay); err != nil {
		return row, err
	}
	row.NotBefore = ceilMilli(row.NotBefore)
	if err := in.countRoute(route{row.Type, row.TaskQueue, row.Node}); err != nil {
		return row, err
	}
	if in.bytes += int64(len(row.Input.Data)); in.bytes > in.cfg.maxBytes {
		return row, umbel.Limit("fan-out", in.bytes, "input bytes of a run", in.cfg.maxBytes)
	}
	in.digest.addRow(&row)
	row.Delay += in.cfg.startAfter // digested apart, so that the two are told from each other
	in.rows++
	return row, nil
}

// countRoute counts distinct routes.
func (in *intake) countRoute(r route) error {
	if r == in.last && in.rows > 0 {
		return nil
	}
	in.last = r
	in.routes[r] = struct{}{}
	if len(in.routes) > umbel.MaxRoutes {
		return umbel.Limit("fan-out", int64(len(in.routes)),
			"routes of a run (distinct activity type, task queue and node)", umbel.MaxRoutes)
	}
	return nil
}

// ceilMilli rounds t up to a whole millisecond: a row is never early. The zero time stays what it is.
func ceilMilli(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	ms := t.UnixMilli()
	if t.Nanosecond()%int(time.Millisecond) != 0 {
		ms++
	}
	return time.UnixMilli(ms).UTC()
}

// finish returns the policies by type, and the digest.
func (in *intake) finish() ([]umbel.TypePolicy, umbel.Digest) {
	slices.SortFunc(in.policies, func(a, b umbel.TypePolicy) int { return cmp.Compare(a.Type, b.Type) })
	return in.policies, in.digest.finish(in.rows, in.cfg.startAfter, in.policies)
}

// refused completes an error of admit with whose item it is about.
func (in *intake) refused(err error) error {
	e, ok := in.cfg.annotate(err).(*umbel.Error) //nolint:errorlint // admit returns nothing else
	if !ok {
		return err
	}
	e.Field += fmt.Sprintf(" of ordinal %d", in.rows)
	return e
}
