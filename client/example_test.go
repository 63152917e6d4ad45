package client_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
)

func ExampleNew() {
	engine := exampleEngine() // a server.Open
	c, err := client.New(engine, client.Config{Namespace: "default"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(client.Do(context.Background(), c, Square, 7))
	// Output: 49 <nil>
}

// The same ID with the same inputs is the same run, however often and from wherever it is started.
func ExampleFanOut() {
	ctx, c := context.Background(), connect()
	for range 2 {
		run, err := client.FanOut(ctx, c, Square, slices.Values([]int{1, 2, 3}), client.WorkflowID("squares"))
		if err != nil {
			fmt.Println(err)
			return
		}
		squares, err := run.Gather(ctx)
		fmt.Println(squares, err, "attached:", run.Attached())
	}
	_, err := client.FanOut(ctx, c, Square, slices.Values([]int{4, 5}), client.WorkflowID("squares"))
	fmt.Println("other inputs:", errors.Is(err, umbel.ErrAlreadyExists))
	// Output:
	// [1 4 9] <nil> attached: false
	// [1 4 9] <nil> attached: true
	// other inputs: true
}

// An item can say more than its input: a key for people, a queue, a node, a delay.
func ExampleFanOutItems() {
	ctx, c := context.Background(), connect()
	words := []string{"stalk", "ray", "flower"}
	items := client.Map(slices.Values(words), func(w string) umbel.Item[string] {
		return umbel.Item[string]{Input: w, Key: "word " + w, Delay: time.Millisecond}
	})
	run, err := client.FanOutItems(ctx, c, Upper, items)
	if err != nil {
		fmt.Println(err)
		return
	}
	for r, err := range run.Results(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(r.Key, "→", r.Value)
	}
	// Unordered output:
	// word stalk → STALK
	// word ray → RAY
	// word flower → FLOWER
}

// A fan-out of several activities. Its results are payloads; the activity decodes them.
func ExampleFanOutMixed() {
	ctx, c := context.Background(), connect()
	calls := func(yield func(umbel.Call, error) bool) {
		_ = yield(Square.Call(umbel.Item[int]{Input: 12}), nil) &&
			yield(Upper.Call(umbel.Item[string]{Input: "umbel"}), nil)
	}
	run, err := client.FanOutMixed(ctx, c, calls)
	if err != nil {
		fmt.Println(err)
		return
	}
	for r, err := range run.Results(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		switch r.Type {
		case Square.Name():
			n, err := Square.Output(r)
			fmt.Println(r.Ordinal, n, err)
		case Upper.Name():
			s, err := Upper.Output(r)
			fmt.Println(r.Ordinal, s, err)
		}
	}
	// Unordered output:
	// 0 144 <nil>
	// 1 UMBEL <nil>
}

// One input, and its result.
func ExampleDo() {
	n, err := client.Do(context.Background(), connect(), Square, 9, client.WorkflowID("nine"))
	fmt.Println(n, err)
	// Output: 81 <nil>
}

// Map turns a sequence of anything into items. It is read as the start goes on, never held whole.
func ExampleMap() {
	ctx, c := context.Background(), connect()
	type order struct {
		id    string
		price int
	}
	orders := []order{{"a-1", 3}, {"a-2", 5}}
	items := client.Map(slices.Values(orders), func(o order) umbel.Item[int] {
		return umbel.Item[int]{Input: o.price, Key: o.id}
	})
	run, err := client.FanOutItems(ctx, c, Square, items)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(run.Gather(ctx))
	// Output: [9 25] <nil>
}

// TryMap is for a source that can fail: its error fails the start, and nothing of it is left.
func ExampleTryMap() {
	var lines iter.Seq2[string, error] = func(yield func(string, error) bool) {
		_ = yield("first", nil) && yield("", errors.New("the listing broke off"))
	}
	items := client.TryMap(lines, func(s string) umbel.Item[string] { return umbel.Item[string]{Input: s} })
	_, err := client.FanOutItems(context.Background(), connect(), Upper, items, client.WorkflowID("listing"))
	fmt.Println(err)
	// Output: umbel: start "listing": reading item 1: the listing broke off
}

// From any process, at any time, by the workflow's ID.
func ExampleAttach() {
	ctx, c := context.Background(), connect()
	if _, err := client.FanOut(ctx, c, Upper, slices.Values([]string{"a", "b"}), client.WorkflowID("letters")); err != nil {
		fmt.Println(err)
		return
	}

	run := client.Attach(c, Upper, "letters")
	fmt.Println(run.Gather(ctx))
	// Output: [A B] <nil>
}

// Without the activity at hand, results are payloads.
func ExampleAttachRaw() {
	ctx, c := context.Background(), connect()
	if _, err := client.Do(ctx, c, Upper, "raw", client.WorkflowID("one-word")); err != nil {
		fmt.Println(err)
		return
	}

	for r, err := range client.AttachRaw(c, "one-word").Results(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(r.Type, r.Value.ContentType, string(r.Value.Data))
	}
	// Output: upper application/json "RAW"
}

// Results come as they finish, in memory that does not grow with their number. The cursor of one is where to go on
// after it, in any process.
func ExampleRun_Results() {
	ctx, c := context.Background(), connect()
	run, err := client.FanOut(ctx, c, Square, slices.Values([]int{1, 2, 3, 4, 5}))
	if err != nil {
		fmt.Println(err)
		return
	}
	var cursor umbel.Cursor
	seen := 0
	for r, err := range run.Results(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		cursor = r.Cursor // keep it with what was made of the result
		if seen++; seen == 2 {
			break
		}
	}
	for _, err := range run.Results(ctx, client.From(cursor)) {
		if err != nil {
			fmt.Println(err)
			return
		}
		seen++
	}
	fmt.Println(seen, "results")
	// Output: 5 results
}

// Gather returns the values by ordinal. Where rows failed it returns the others all the same, and an error that
// counts and samples the failures.
func ExampleRun_Gather() {
	ctx, c := context.Background(), connect()
	run, err := client.FanOut(ctx, c, Check, slices.Values([]string{"good", "bad", "good"}))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = run.Gather(ctx)
	if failed, ok := errors.AsType[*umbel.FanOutError](err); ok {
		fmt.Println(failed.Counts.Completed, "completed,", failed.Counts.Failed, "failed")
		for _, row := range failed.Sample {
			fmt.Println("ordinal", row.Ordinal, row.Err.Message)
		}
	}
	// Output:
	// 2 completed, 1 failed
	// ordinal 1 does not pass
}

// Wait is for runs whose results nobody needs here.
func ExampleRun_Wait() {
	ctx, c := context.Background(), connect()
	run, err := client.FanOut(ctx, c, Check, slices.Values([]string{"good", "good"}))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(run.Wait(ctx))
	// Output: <nil>
}

// Progress counts rows. A start delay of an hour keeps these where they are.
func ExampleRun_Progress() {
	ctx, c := context.Background(), connect()
	run, err := client.FanOut(ctx, c, Square, slices.Values([]int{1, 2, 3}), client.StartAfter(time.Hour))
	if err != nil {
		fmt.Println(err)
		return
	}
	counts, err := run.Progress(ctx)
	fmt.Println(counts.Resolved(), "of", counts.Scheduled, err)
	// Output: 0 of 3 <nil>
}

// Once Cancel has returned, no row that it cancelled is claimed again.
func ExampleRun_Cancel() {
	ctx, c := context.Background(), connect()
	run, err := client.FanOut(ctx, c, Square, slices.Values([]int{1, 2, 3}), client.StartAfter(time.Hour))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := run.Cancel(ctx, "not needed any more", 1); err != nil { // one row
		fmt.Println(err)
	}
	if err := run.Cancel(ctx, "not needed any more"); err != nil { // what is left
		fmt.Println(err)
	}
	err = run.Wait(ctx)
	fmt.Println(errors.Is(err, umbel.ErrCancelled))
	if failed, ok := errors.AsType[*umbel.FanOutError](err); ok {
		fmt.Println(failed.Status, failed.Counts.Cancelled)
	}
	// Output:
	// true
	// cancelled 3
}
