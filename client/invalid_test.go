package client_test

import (
	"errors"
	"iter"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
)

// Bad values are refused by name, with their rule, before anything is written (cases 22, 37, 40, 47, promise 17).
func TestCase37BadValuesAreRefusedByName(t *testing.T) {
	long := strings.Repeat("n", umbel.MaxNameBytes+1)
	type item = umbel.Item[umbel.Payload]
	items := func(its ...item) iter.Seq2[item, error] {
		return func(yield func(item, error) bool) {
			for _, it := range its {
				if !yield(it, nil) {
					return
				}
			}
		}
	}
	start := func(it item, o ...client.StartOption) func(*client.Client) error {
		return func(c *client.Client) error {
			_, err := client.FanOutItems(t.Context(), c, raw, items(it), o...)
			return err
		}
	}
	option := func(o client.StartOption) func(*client.Client) error { return start(item{}, o) }
	retry := func(p umbel.RetryPolicy) func(*client.Client) error { return option(client.Retry(p)) }
	activity := func(name string, o ...umbel.ActivityOption) func(*client.Client) error {
		return func(c *client.Client) error {
			_, err := client.FanOut(t.Context(), c, umbel.Define[int, int](name, o...), upTo(0))
			return err
		}
	}
	cancel := func(reason string, ordinals ...int64) func(*client.Client) error {
		return func(c *client.Client) error { return client.AttachRaw(c, "w").Cancel(t.Context(), reason, ordinals...) }
	}
	attached := func(id umbel.WorkflowID) func(*client.Client) error {
		return func(c *client.Client) error {
			run := client.Attach(c, double, id)
			for _, err := range run.Results(t.Context()) {
				if !errors.Is(err, umbel.ErrInvalid) {
					t.Errorf("results: %v", err)
				}
			}
			if _, err := run.Gather(t.Context()); !errors.Is(err, umbel.ErrInvalid) {
				t.Errorf("gather: %v", err)
			}
			if err := run.Cancel(t.Context(), ""); !errors.Is(err, umbel.ErrInvalid) {
				t.Errorf("cancel: %v", err)
			}
			return run.Wait(t.Context())
		}
	}
	ns := func(name string) func(*client.Client) error {
		return func(*client.Client) error {
			_, err := client.New(&fake{}, client.Config{Namespace: name})
			return err
		}
	}
	mixed := func(calls ...umbel.Call) func(*client.Client) error {
		return func(c *client.Client) error {
			_, err := client.FanOutMixed(t.Context(), c, func(yield func(umbel.Call, error) bool) {
				for _, call := range calls {
					if !yield(call, nil) {
						return
					}
				}
			})
			return err
		}
	}
	a3 := umbel.Define[int, int]("a", umbel.Retry(umbel.RetryPolicy{MaxAttempts: 3}))
	a4 := umbel.Define[int, int]("a", umbel.Retry(umbel.RetryPolicy{MaxAttempts: 4}))
	aMinute := umbel.Define[int, int]("a", umbel.Retry(umbel.RetryPolicy{MaxAttempts: 3}), umbel.StartToClose(time.Minute))

	for name, tc := range map[string]struct {
		do    func(*client.Client) error
		field string
		rule  string
	}{
		"no engine": {func(*client.Client) error { _, err := client.New(nil, client.Config{}); return err }, "engine", "nil"},
		"nil inputs": {func(c *client.Client) error {
			_, err := client.FanOut(t.Context(), c, double, nil)
			return err
		}, "inputs", "nil"},
		"nil calls": {func(c *client.Client) error { _, err := client.FanOutMixed(t.Context(), c, nil); return err }, "calls", "nil"},

		"nil option": {option(nil), "option", "nil"},

		"namespace long":      {ns(long), "namespace", "255 bytes"},
		"namespace control":   {ns("a\x00"), "namespace", "control"},
		"workflow empty":      {option(client.WorkflowID("")), "workflow ID", "empty"},
		"workflow long":       {option(client.WorkflowID(umbel.WorkflowID(long))), "workflow ID", "255 bytes"},
		"workflow control":    {option(client.WorkflowID("a\n")), "workflow ID", "control"},
		"workflow bad UTF-8":  {option(client.WorkflowID("a\xff")), "workflow ID", "UTF-8"},
		"attach empty":        {attached(""), "workflow ID", "empty"},
		"attach bad UTF-8":    {attached("\xff"), "workflow ID", "UTF-8"},
		"queue long":          {option(client.TaskQueue(long)), "task queue", "255 bytes"},
		"queue control":       {option(client.TaskQueue("\t")), "task queue", "control"},
		"node bad UTF-8":      {option(client.Node("\xc0")), "node", "UTF-8"},
		"type empty":          {activity(""), "activity type", "empty"},
		"type long":           {activity(long), "activity type", "255 bytes"},
		"call type empty":     {mixed(umbel.Call{}), "activity type of ordinal 0", "empty"},
		"item queue control":  {start(item{TaskQueue: "\x7f"}), "task queue of ordinal 0", "control"},
		"item node long":      {start(item{Node: long}), "node of ordinal 0", "255 bytes"},
		"item key bad UTF-8":  {start(item{Key: "\xff"}), "key of ordinal 0", "UTF-8"},
		"item key long":       {start(item{Key: long}), "key of ordinal 0", "255 bytes"},
		"content type":        {start(item{Input: umbel.Payload{ContentType: long}}), "content type of ordinal 0", "255 bytes"},
		"payload":             {start(item{Input: umbel.Payload{Data: make([]byte, umbel.MaxPayloadBytes+1)}}), "input of ordinal 0", "2097152 payload bytes"},
		"on existing":         {option(client.OnExisting(3)), "on-existing", "SameInputs"},
		"start-after neg":     {option(client.StartAfter(-1)), "start-after", "from 0s"},
		"start-after 292 y":   {option(client.StartAfter(math.MaxInt64)), "start-after", "from 0s"},
		"start-after half ms": {option(client.StartAfter(1500 * time.Microsecond)), "start-after", "whole number of milliseconds"},
		"stc negative":        {option(client.StartToClose(-time.Second)), "start-to-close", "from 0s"},
		"stc sub-ms":          {option(client.StartToClose(time.Microsecond)), "start-to-close", "whole number"},
		"stc huge":            {option(client.StartToClose(math.MaxInt64)), "start-to-close", "from 0s"},
		"activity stc":        {activity("a", umbel.StartToClose(-1)), "start-to-close", "from 0s"},
		"activity retry":      {activity("a", umbel.Retry(umbel.RetryPolicy{MaxAttempts: -1})), "retry attempts", "from 1 to 64"},
		"delay negative":      {start(item{Delay: -time.Millisecond}), "delay of ordinal 0", "from 0s"},
		"delay overflow":      {start(item{Delay: math.MaxInt64}), "delay of ordinal 0", "from 0s"},
		"delay min":           {start(item{Delay: math.MinInt64}), "delay of ordinal 0", "from 0s"},
		"delay 333.333 ms":    {start(item{Delay: 333333 * time.Microsecond}), "delay of ordinal 0", "whole number"},
		"delay and start-after": {
			start(item{Delay: umbel.MaxDelay}, client.StartAfter(time.Millisecond)), "delay with start-after of ordinal 0", "from 0s",
		},
		"not before 1969":  {start(item{NotBefore: time.Unix(-1, 0)}), "not-before of ordinal 0", "1970"},
		"not before 10000": {start(item{NotBefore: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}), "not-before of ordinal 0", "9999"},

		"retry initial":      {retry(umbel.RetryPolicy{Initial: -1}), "retry initial", "from 1ms"},
		"retry initial 1 ns": {retry(umbel.RetryPolicy{Initial: 1}), "retry initial", "from 1ms"},
		"retry cap":          {retry(umbel.RetryPolicy{Initial: time.Hour, Cap: time.Second}), "retry cap", "from 1h"},
		"retry cap huge":     {retry(umbel.RetryPolicy{Cap: math.MaxInt64}), "retry cap", "from 1s"},
		"retry factor":       {retry(umbel.RetryPolicy{Factor: 0.5}), "retry factor", "from 1 to 1000"},
		"retry factor NaN":   {retry(umbel.RetryPolicy{Factor: math.NaN()}), "retry factor", "from 1 to 1000"},
		"retry factor Inf":   {retry(umbel.RetryPolicy{Factor: math.Inf(1)}), "retry factor", "from 1 to 1000"},
		"retry jitter NaN":   {retry(umbel.RetryPolicy{Jitter: math.NaN()}), "retry jitter", "from 0 to 1"},
		"retry jitter Inf":   {retry(umbel.RetryPolicy{Jitter: math.Inf(-1)}), "retry jitter", "from 0 to 1"},
		"retry attempts":     {retry(umbel.RetryPolicy{MaxAttempts: 65}), "retry attempts", "from 1 to 64"},
		"retry types":        {retry(umbel.RetryPolicy{NonRetryable: make([]string, 65)}), "retry non-retryable types", "64 types"},
		"retry type":         {retry(umbel.RetryPolicy{NonRetryable: []string{""}}), "retry non-retryable type", "empty"},
		"two retries":        {mixed(a3.Call(umbel.Item[int]{}), a4.Call(umbel.Item[int]{})), `activity type of ordinal 1 "a"`, "different retry"},
		"two timeouts":       {mixed(a3.Call(umbel.Item[int]{}), aMinute.Call(umbel.Item[int]{})), `activity type of ordinal 1 "a"`, "start-to-close"},

		"ordinal -1":      {cancel("", 1, -1), "ordinal", "from 0 to 16777215"},
		"ordinal 2^24":    {cancel("", 1<<24), "ordinal", "from 0 to 16777215"},
		"ordinal min":     {cancel("", math.MinInt64), "ordinal", "from 0 to 16777215"},
		"ordinals empty":  {cancel("", []int64{}...), "ordinals", "leave them out"},
		"reason long":     {cancel(strings.Repeat("r", umbel.MaxErrorMessageBytes+1)), "reason", "4096 bytes"},
		"reason no UTF-8": {cancel("\xff"), "reason", "UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{}
			err := tc.do(newClient(t, f))
			e, ok := errors.AsType[*umbel.Error](err)
			if !ok || e.Code != umbel.CodeInvalid && e.Code != umbel.CodeLimit {
				t.Fatalf("got %v", err)
			}
			if !strings.Contains(err.Error(), tc.field) || !strings.Contains(err.Error(), tc.rule) {
				t.Errorf("got %q, want %q and %q in it", err, tc.field, tc.rule)
			}
			if !umbel.SafeToRetry(err) || f.writes() != 0 {
				t.Errorf("written: %v", f.calls)
			}
		})
	}
}

func TestEdgesAreAccepted(t *testing.T) {
	f := &fake{}
	c := newClient(t, f)
	name := strings.Repeat("é", 127) + "n"
	it := umbel.Item[umbel.Payload]{
		Key: name, Node: name, TaskQueue: "{}:*", Delay: umbel.MaxDelay - time.Millisecond,
		NotBefore: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		Input:     umbel.Payload{ContentType: name, Data: make([]byte, umbel.MaxPayloadBytes)},
	}
	one := func(yield func(umbel.Item[umbel.Payload], error) bool) { yield(it, nil) }
	_, err := client.FanOutItems(t.Context(), c, umbel.Define[umbel.Payload, umbel.None](name), one,
		client.WorkflowID(umbel.WorkflowID(name)), client.StartAfter(time.Millisecond), client.StartToClose(umbel.MaxDelay))
	if err != nil {
		t.Fatal(err)
	}
	if row := f.run(umbel.WorkflowID(name)).rows[0]; row.Key != name || row.TaskQueue != "{}:*" || row.Delay != umbel.MaxDelay {
		t.Errorf("%q %q %v", row.Key, row.TaskQueue, row.Delay)
	}
}

func TestNotBeforeIsRoundedUp(t *testing.T) {
	f := &fake{}
	at := time.Date(2027, 1, 1, 0, 0, 0, 1, time.FixedZone("", 3600))
	one := func(yield func(umbel.Item[int], error) bool) { yield(umbel.Item[int]{NotBefore: at}, nil) }
	run, err := client.FanOutItems(t.Context(), newClient(t, f), double, one)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.run(run.WorkflowID()).rows[0].NotBefore; got != at.Add(time.Millisecond-1).UTC() {
		t.Errorf("got %v", got)
	}
}
