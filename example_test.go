package umbel_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/worker"
)

// The contract, in a package that worker and client share.
var CountWords = umbel.Define[string, int]("count-words", umbel.StartToClose(time.Minute))

// A worker runs it, until ctx ends.
func work(ctx context.Context, engine umbel.Engine) error {
	w, err := worker.New(engine, worker.Config{Concurrency: 32})
	if err != nil {
		return err
	}
	worker.Handle(w, CountWords, func(_ context.Context, line string) (int, error) {
		return len(strings.Fields(line)), nil
	})
	return w.Run(ctx)
}

// A client starts it and waits for what comes back.
func count(ctx context.Context, engine umbel.Engine, lines []string) ([]int, error) {
	c, err := client.New(engine, client.Config{})
	if err != nil {
		return nil, err
	}
	run, err := client.FanOut(ctx, c, CountWords, slices.Values(lines), client.WorkflowID("poem"))
	if err != nil {
		return nil, err
	}
	return run.Gather(ctx) // an int for each line, in the order of the lines
}

// A fan-out from end to end: the contract, a worker and a client. The engine is what server.Open returns.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	engine, end := open(ctx)
	defer end()
	worked := make(chan error, 1)
	go func() { worked <- work(ctx, engine) }()

	words, err := count(ctx, engine, []string{"so much depends", "upon", "a red wheel barrow"})
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(words)

	stop()
	if err := <-worked; err != nil {
		fmt.Println(err)
	}
	// Output: [3 1 4]
}
