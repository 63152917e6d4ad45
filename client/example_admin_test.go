package client_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
)

// Everything by name and in bytes, as the command umbel does it.
func ExampleAdmin() {
	ctx := context.Background()
	admin, err := client.NewAdmin(exampleEngine(), client.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	words := func(yield func(umbel.Payload, error) bool) {
		for _, w := range []string{`"sepal"`, `"petal"`} {
			if !yield(umbel.Payload{ContentType: umbel.ContentTypeJSON, Data: []byte(w)}, nil) {
				return
			}
		}
	}
	if _, err := admin.Start(ctx, client.StartSpec{WorkflowID: "parts", Activity: "upper"}, words); err != nil {
		fmt.Println(err)
		return
	}
	for r, err := range admin.Results(ctx, "parts", client.ResultsQuery{Ordered: true, Follow: true}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(r.Ordinal, r.Status, string(r.Value.Data))
	}
	info, err := admin.Show(ctx, "parts", "")
	fmt.Println(info.Status, info.Types, info.Counts.Completed, err)
	// Output:
	// 0 completed "SEPAL"
	// 1 completed "PETAL"
	// completed [upper] 2 <nil>
}

// Which runs there are, by how they stand and what they are called.
func ExampleAdmin_List() {
	ctx := context.Background()
	admin, err := client.NewAdmin(exampleEngine(), client.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, day := range []umbel.WorkflowID{"nightly/monday", "nightly/tuesday"} {
		if _, err := client.Do(ctx, connect(), Upper, string(day), client.WorkflowID(day)); err != nil {
			fmt.Println(err)
			return
		}
	}
	for info, err := range admin.List(ctx, client.ListFilter{Prefix: "nightly/", Status: umbel.StatusCompleted}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(info.WorkflowID, info.Types, info.Counts.Scheduled)
	}
	// Unordered output:
	// nightly/tuesday [upper] 1
	// nightly/monday [upper] 1
}

// The life of one row. With Follow, History waits for what is still to come.
func ExampleAdmin_History() {
	ctx := context.Background()
	admin, err := client.NewAdmin(exampleEngine(), client.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := client.FanOut(ctx, connect(), Check, slices.Values([]string{"good", "bad"}), client.WorkflowID("checked")); err != nil {
		fmt.Println(err)
		return
	}
	for ev, err := range admin.History(ctx, "checked", client.HistoryQuery{Ordinal: new(int64(1)), Follow: true}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(ev.Type, ev.Ordinal)
	}
	// Output:
	// ActivityScheduled 1
	// ActivityStarted 1
	// ActivityFailed 1
}

// Cancel says how many rows it cancelled.
func ExampleAdmin_Cancel() {
	ctx := context.Background()
	admin, err := client.NewAdmin(exampleEngine(), client.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	later := client.StartAfter(time.Hour)
	if _, err := client.FanOut(ctx, connect(), Square, slices.Values([]int{1, 2, 3}), client.WorkflowID("later"), later); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(admin.Cancel(ctx, "later", "", "not needed any more"))
	// Output: 3 <nil>
}

// A progress bar, without asking more often than anybody looks.
func ExampleRun_Watch() {
	ctx, c := context.Background(), connect()
	run, err := client.FanOut(ctx, c, Square, slices.Values([]int{1, 2, 3}))
	if err != nil {
		fmt.Println(err)
		return
	}
	var last umbel.Counts
	for counts, err := range run.Watch(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		last = counts
	}
	fmt.Println(last.Resolved(), "of", last.Scheduled)
	// Output: 3 of 3
}

// Results in the order of the inputs, each as soon as all before it are there.
func ExampleOrdered() {
	ctx, c := context.Background(), connect()
	run, err := client.FanOut(ctx, c, Square, slices.Values([]int{3, 1, 2}))
	if err != nil {
		fmt.Println(err)
		return
	}
	for r, err := range run.Results(ctx, client.Ordered()) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(r.Ordinal, r.Value)
	}
	// Output:
	// 0 9
	// 1 1
	// 2 4
}

// What failed, with the inputs to look into, and nothing of all that did not.
func ExampleOnlyFailed() {
	ctx, c := context.Background(), connect()
	run, err := client.FanOut(ctx, c, Check, slices.Values([]string{"good", "bad", "good", "bad"}))
	if err != nil {
		fmt.Println(err)
		return
	}
	for r, err := range run.Results(ctx, client.OnlyFailed(), client.Ordered(), client.WithInputs()) {
		if err != nil {
			fmt.Println(err)
			return
		}
		in, _ := Check.Input(r.Row)
		fmt.Println(r.Ordinal, in, r.Err)
	}
	// Output:
	// 1 bad does not pass
	// 3 bad does not pass
}
