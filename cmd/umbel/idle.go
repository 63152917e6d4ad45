package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
)

// idleAfter is how long rows may be due before a person who waits for them is told that nobody takes any.
const idleAfter = 10 * time.Second

// idle tells, once, whoever waits for a run that no worker has taken a row of it.
type idle struct{ timer *time.Timer }

// newIdle begins to count. before is written before the hint, to get off a line that is in use.
func newIdle(w io.Writer, before, namespace string, spec client.StartSpec) *idle {
	return &idle{time.AfterFunc(spec.Delay+idleAfter, func() {
		_, _ = fmt.Fprintf(w, "%sumbel: no worker has taken a row for %v; this one would: umbel worker%s -- CMD\n",
			before, idleAfter, placeFlags(namespace, spec)) // a hint
	})}
}

// see stops idle once a worker has taken a row.
func (i *idle) see(c umbel.Counts) {
	if c.Pending < c.Scheduled {
		i.stop()
	}
}

func (i *idle) stop() { i.timer.Stop() }

// placeFlags are the flags of a worker that takes the rows of a start, as far as they differ from what it has anyway.
func placeFlags(namespace string, spec client.StartSpec) string {
	var b strings.Builder
	for _, flag := range []struct{ name, value, usual string }{
		{"namespace", namespace, umbel.DefaultNamespace},
		{"activity", spec.Activity, client.DefaultActivity},
		{"task-queue", spec.TaskQueue, umbel.DefaultTaskQueue},
		{"node", spec.Node, ""},
	} {
		if flag.value != flag.usual {
			b.WriteString(" --" + flag.name + " " + quoteArg(flag.value))
		}
	}
	return b.String()
}
