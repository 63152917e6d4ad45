package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
)

// options is the command line.
type options struct {
	dir        string
	redis      string
	workflowID string
	lease      time.Duration
}

// parse reads the command line, or says how it is meant and ends the process.
func parse(args []string) options {
	var o options
	flags := flag.NewFlagSet(args[0], flag.ExitOnError)
	flags.StringVar(&o.redis, "redis", "", "`URL` of a Redis, as redis://host:port (default: one in this process)")
	flags.StringVar(&o.workflowID, "workflow-id", "", "`name` under which a later run attaches to this one")
	flags.DurationVar(&o.lease, "lease", 0, "how long a worker of the whole installation may be silent before its files are tried again; stays set\n"+
		"(default: the installation's, at first "+umbel.DefaultLease.String()+")")
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: checksum [flags] DIR")
		flags.PrintDefaults()
	}
	var dirs []string
	for rest := args[1:]; ; { // flags may follow DIR
		_ = flags.Parse(rest) // it ends the process on an error
		if rest = flags.Args(); len(rest) == 0 {
			break
		}
		dirs, rest = append(dirs, rest[0]), rest[1:]
	}
	if len(dirs) != 1 {
		flags.Usage()
		os.Exit(wrongUsage)
	}
	o.dir = dirs[0]
	return o
}

// wrongUsage is the exit code that package flag uses, too.
const wrongUsage = 2

// start is what the options say about the start of the fan-out.
func (o options) start() []client.StartOption {
	if o.workflowID == "" {
		return nil
	}
	return []client.StartOption{client.WorkflowID(umbel.WorkflowID(o.workflowID))}
}
