package client

import (
	"bytes"
	"context"
	"iter"

	"github.com/umbelhq/umbel"
)

// FanOut hands every element of inputs to activity a and returns the run, not waiting for results. inputs is a
// sequence of a's In: [slices.Values] of a slice, or any iter.Seq. Use [FanOutItems] with [Map] to give items
// a key, a node or a delay, and with [TryMap] for a source that can fail.
//
// The sequence is read once, in the calling goroutine; N may be 0. Nothing of the start is visible before all
// of it is. Starting a [WorkflowID] again with equal inputs and options attaches to its run; see [SameInputs],
// [Existing], [Reject].
//
// Errors: [umbel.ErrInvalid] and [umbel.ErrLimit] name a value and the rule that it breaks, and nothing is left
// of the start; [umbel.ErrAlreadyExists] names the run; [umbel.ErrStagingLost] says to start again;
// [umbel.ErrOverloaded]; [umbel.ErrUnavailable] after [Patience] or at ctx's end, which it then wraps. If it is
// unknown whether the run was started (see [umbel.SafeToRetry]), starting again with the same workflow ID and
// inputs is right.
//
// [slices.Values]: https://pkg.go.dev/slices#Values
func FanOut[In, Out any](
	ctx context.Context, c *Client, a umbel.Activity[In, Out], inputs iter.Seq[In], opts ...StartOption,
) (*Run[Out], error) {
	return FanOutItems(ctx, c, a, Map(inputs, func(in In) umbel.Item[In] { return umbel.Item[In]{Input: in} }), opts...)
}

// FanOutItems is [FanOut] for items that say more than their input: make the sequence with [Map] or [TryMap].
// An error of the sequence fails the start, wrapped; what was staged is discarded.
func FanOutItems[In, Out any](
	ctx context.Context, c *Client, a umbel.Activity[In, Out], items iter.Seq2[umbel.Item[In], error], opts ...StartOption,
) (*Run[Out], error) {
	cfg, err := newStartConfig(opts)
	if err != nil {
		return nil, err
	}
	if items == nil {
		return nil, cfg.annotate(umbel.Invalid("inputs", "nil", "must not be nil"))
	}
	s, err := c.start(ctx, cfg, encodeItems(a, items), a.Policy())
	if err != nil {
		return nil, err
	}
	return newRun(c, cfg.id, s, outputOf(a)), nil
}

func encodeItems[In, Out any](a umbel.Activity[In, Out], items iter.Seq2[umbel.Item[In], error]) iter.Seq2[entry, error] {
	codec, name := a.Codec(), a.Name()
	return func(yield func(entry, error) bool) {
		for it, err := range items {
			if err != nil {
				yield(entry{}, err)
				return
			}
			p, err := codec.Encode(it.Input)
			if _, ok := any(it.Input).(umbel.Payload); ok {
				p.Data = bytes.Clone(p.Data) // the source may use its buffer again
			}
			e := entry{err: err, row: umbel.StagedRow{
				Type: name, TaskQueue: it.TaskQueue, Node: it.Node, Key: it.Key,
				Delay: it.Delay, NotBefore: it.NotBefore, Input: p,
			}}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// FanOutMixed is [FanOutItems] for calls of different activities; make them with [umbel.Activity.Call]. Results
// carry the activity type in Row.Type and are decoded with [umbel.Activity.Output]. All calls of one type must
// have the same retry policy and start-to-close.
func FanOutMixed(
	ctx context.Context, c *Client, calls iter.Seq2[umbel.Call, error], opts ...StartOption,
) (*Run[umbel.Payload], error) {
	cfg, err := newStartConfig(opts)
	if err != nil {
		return nil, err
	}
	if calls == nil {
		return nil, cfg.annotate(umbel.Invalid("calls", "nil", "must not be nil"))
	}
	s, err := c.start(ctx, cfg, entries(calls))
	if err != nil {
		return nil, err
	}
	return newRun(c, cfg.id, s, rawOutput), nil
}

func entries(calls iter.Seq2[umbel.Call, error]) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		for call, err := range calls {
			if err != nil {
				yield(entry{}, err)
				return
			}
			policy, err := call.Policy()
			policy.Type = call.Type // the caller may have changed it
			e := entry{policy: policy, err: err, row: umbel.StagedRow{
				Type: call.Type, TaskQueue: call.TaskQueue, Node: call.Node, Key: call.Key,
				Delay: call.Delay, NotBefore: call.NotBefore,
				Input: umbel.Payload{ContentType: call.Input.ContentType, Data: bytes.Clone(call.Input.Data)},
			}}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Do is a fan-out of one input that waits for its result: the value, or the row's own error, which holds a
// [*umbel.Failure] or wraps [umbel.ErrCancelled]. Errors of the start and of reading are those of [FanOut] and
// [Run.Results]. When ctx ends Do returns, and the activity goes on; with a [WorkflowID], Do again waits for
// the same result.
func Do[In, Out any](
	ctx context.Context, c *Client, a umbel.Activity[In, Out], in In, opts ...StartOption,
) (Out, error) {
	var none Out
	one := func(yield func(In) bool) { yield(in) }
	run, err := FanOut(ctx, c, a, one, opts...)
	if err != nil {
		return none, err
	}
	for r, err := range run.Results(ctx) {
		if err != nil {
			return none, err
		}
		if r.Ordinal == 0 { // with Existing, the run may have more
			return r.Value, r.Err
		}
	}
	return none, &umbel.Error{
		Code: umbel.CodeInternal, Op: "do", WorkflowID: run.WorkflowID(), RunID: run.ID(),
		Reason: "the run ended without a result of ordinal 0",
	}
}
