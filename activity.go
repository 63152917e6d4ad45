package umbel

import (
	"fmt"
	"time"
)

// Activity is the contract between the client that starts an activity and the worker that runs it: a type,
// an input, an output and how failures are treated. It is a value: define it once, in a package that both
// import, and copy it freely. Safe for concurrent use.
type Activity[In, Out any] struct {
	name string
	cfg  activityConfig
}

type activityConfig struct {
	codec        Codec
	retry        RetryPolicy
	startToClose time.Duration
}

// ActivityOption sets a property of an [Activity] in [Define].
type ActivityOption interface{ applyActivity(*activityConfig) }

type activityOption func(*activityConfig)

func (o activityOption) applyActivity(c *activityConfig) { o(c) }

// Define returns the activity of the given type. Nothing is checked here: [worker.Handle] panics and a start
// fails if the name or an option breaks a rule.
//
// [worker.Handle]: https://pkg.go.dev/github.com/umbelhq/umbel/worker#Handle
func Define[In, Out any](name string, opts ...ActivityOption) Activity[In, Out] {
	a := Activity[In, Out]{name: name, cfg: activityConfig{codec: JSON}}
	for _, o := range opts {
		o.applyActivity(&a.cfg)
	}
	return a
}

// Retry sets the activity's retry policy. A start may override it; the worker has no say in it.
func Retry(p RetryPolicy) ActivityOption {
	return activityOption(func(c *activityConfig) { c.retry = p })
}

// StartToClose bounds one attempt, in whole milliseconds up to [MaxDelay]. Default 0: no bound, a worker
// may take as long as it renews its lease.
func StartToClose(d time.Duration) ActivityOption {
	return activityOption(func(c *activityConfig) { c.startToClose = d })
}

// WithCodec replaces [JSON].
func WithCodec(codec Codec) ActivityOption {
	return activityOption(func(c *activityConfig) { c.codec = codec })
}

// Name returns the activity type.
func (a Activity[In, Out]) Name() string { return a.name }

// Codec returns the codec of input and output.
func (a Activity[In, Out]) Codec() Codec {
	if a.cfg.codec == nil {
		return JSON
	}
	return a.cfg.codec
}

// Policy returns what a start sends along for the activity: its type, retry policy and start-to-close.
func (a Activity[In, Out]) Policy() TypePolicy {
	return TypePolicy{Type: a.name, Retry: a.cfg.retry, StartToClose: a.cfg.startToClose}
}

// Item is one input with what is said about it alone.
type Item[In any] struct {
	// Input is the activity's input.
	Input In
	// Key is a label for people and results, at most [MaxNameBytes]; neither unique nor indexed.
	Key string
	// TaskQueue overrides the start's task queue.
	TaskQueue string
	// Node pins the row to workers that advertise it. Empty: the start's node, by default none.
	Node string
	// Delay keeps the row back for so long after the start began. Whole milliseconds, up to [MaxDelay].
	Delay time.Duration
	// NotBefore keeps the row back until an instant of Redis's clock. The later of the two holds.
	NotBefore time.Time
}

// Call is an item of any activity, for mixed fan-outs. Make it with [Activity.Call].
type Call struct {
	Type string
	Item[Payload]

	policy TypePolicy
	err    error
}

// Call encodes it as an item of a mixed fan-out. An input that cannot be encoded fails the start.
func (a Activity[In, Out]) Call(it Item[In]) Call {
	p, err := a.Codec().Encode(it.Input)
	return Call{
		Type: a.name,
		Item: Item[Payload]{
			Input: p, Key: it.Key, TaskQueue: it.TaskQueue, Node: it.Node,
			Delay: it.Delay, NotBefore: it.NotBefore,
		},
		policy: a.Policy(), err: err,
	}
}

// Policy returns the type policy that travels with the call, and why its input could not be encoded. A Call
// that was not made by [Activity.Call] has the default policy of its type.
func (c Call) Policy() (TypePolicy, error) {
	if c.policy.Type == "" {
		return TypePolicy{Type: c.Type}, c.err
	}
	return c.policy, c.err
}

// Input decodes the input of a row that was read with its inputs.
func (a Activity[In, Out]) Input(r Row) (In, error) {
	var in In
	if err := a.Codec().Decode(r.Input, &in); err != nil {
		return in, fmt.Errorf("umbel: input of %s, ordinal %d: %w", a.name, r.Ordinal, err)
	}
	return in, nil
}

// Output decodes a result of a mixed fan-out. It returns the result's own error if it has one.
func (a Activity[In, Out]) Output(r Result[Payload]) (Out, error) {
	var out Out
	if r.Err != nil {
		return out, r.Err
	}
	if err := a.Codec().Decode(r.Value, &out); err != nil {
		return out, fmt.Errorf("umbel: result of %s, ordinal %d: %w", a.name, r.Ordinal, err)
	}
	return out, nil
}

// TypePolicy is how the rows of one activity type are treated. It travels with the start.
type TypePolicy struct {
	Type         string
	Retry        RetryPolicy
	StartToClose time.Duration // 0: none
}

// Validate reports the first value of p that breaks a rule.
func (p TypePolicy) Validate() error {
	if err := ValidateName("activity type", p.Type); err != nil {
		return err
	}
	if err := ValidateDuration("start-to-close", p.StartToClose, 0, MaxDelay); err != nil {
		return err
	}
	return p.Retry.Validate()
}
