package main

import (
	"flag"
	"fmt"
	"iter"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
)

// options is the command line.
type options struct {
	n    int
	each time.Duration
	data string
	log  string
}

// parse reads the command line, or says how it is meant and ends the process.
func parse(args []string) options {
	var o options
	flags := flag.NewFlagSet(args[0], flag.ExitOnError)
	flags.IntVar(&o.n, "n", 1000, "how many `numbers`")
	flags.DurationVar(&o.each, "each", 20*time.Millisecond, "how long each of them takes")
	flags.StringVar(&o.data, "data", "resume-data", "`directory` of the Redis, unless $UMBEL_ADDR names servers")
	flags.StringVar(&o.log, "log", "", "`file` that gets a line whenever a number is begun")
	_ = flags.Parse(args[1:]) // it ends the process on an error
	return o
}

// numbers are the inputs.
func (o options) numbers() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range o.n {
			if !yield(i + 1) {
				return
			}
		}
	}
}

// id is what a later process finds this fan-out by. Another count is another fan-out.
func (o options) id() client.StartOption {
	return client.WorkflowID(umbel.WorkflowID(fmt.Sprintf("factors-to-%d", o.n)))
}
