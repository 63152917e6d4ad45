package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
)

// Who waits for rows that nobody takes is told of a worker that would, once they are due; who sees them taken is not.
func TestIdleIsSaid(t *testing.T) {
	t.Parallel()
	usual := client.StartSpec{Activity: client.DefaultActivity, TaskQueue: umbel.DefaultTaskQueue}
	for name, tc := range map[string]struct {
		spec      client.StartSpec
		namespace string
		seen      umbel.Counts
		want      string
	}{
		"usual": {usual, umbel.DefaultNamespace, umbel.Counts{Scheduled: 3, Pending: 3}, "umbel worker -- CMD\n"},
		"named": {
			client.StartSpec{Activity: "a b", TaskQueue: "q", Node: "n", Delay: time.Hour}, "ns", umbel.Counts{Scheduled: 3, Pending: 3},
			"umbel worker --namespace ns --activity 'a b' --task-queue q --node n -- CMD\n",
		},
		"claimed":  {usual, umbel.DefaultNamespace, umbel.Counts{Scheduled: 3, Pending: 2, Claimed: 1}, ""},
		"resolved": {usual, umbel.DefaultNamespace, umbel.Counts{Scheduled: 3, Pending: 2, Cancelled: 1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				said := noted{begun: time.Now()}
				i := newIdle(&said, "", tc.namespace, tc.spec)
				defer i.stop()
				i.see(tc.seen)
				time.Sleep(tc.spec.Delay + time.Minute)
				synctest.Wait()
				var want noted
				if tc.want != "" {
					want = noted{text: "umbel: no worker has taken a row for 10s; this one would: " + tc.want, after: tc.spec.Delay + idleAfter}
				}
				if said.text != want.text || said.after != want.after {
					t.Errorf("said %q after %v, want %q after %v", said.text, said.after, want.text, want.after)
				}
			})
		})
	}
}

// noted keeps what is written, and how long after begun the last of it came.
type noted struct {
	begun time.Time
	text  string
	after time.Duration
}

// Write implements io.Writer.
func (n *noted) Write(p []byte) (int, error) {
	n.text += string(p)
	n.after = time.Since(n.begun)
	return len(p), nil
}
