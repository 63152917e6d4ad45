package server

import (
	"sync/atomic"
	"testing"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/history"
	"github.com/umbelhq/umbel/outbox"
)

// What a call that has ended had queued is dropped, or the queue would grow for as long as Redis is away: its
// worker reports it again.
func TestPromise15AbandonedReportsAreDropped(t *testing.T) {
	t.Parallel()
	r := &reporter{kick: make(chan struct{}, 1)}
	run := &outbox.Run{}
	var ended, live atomic.Bool
	ended.Store(true)
	told := 0
	for i := range int64(10) {
		abandoned := &live
		if i%2 == 0 {
			abandoned = &ended
		}
		r.add(&pending{
			run: run, Settled: history.Settled{Ordinal: i}, abandoned: abandoned,
			answer: func(_ history.Answer, err error) {
				told++
				if umbel.CodeOf(err) != umbel.CodeUnavailable {
					t.Errorf("ordinal %d: %v", i, err)
				}
			},
		})
	}
	batches := r.next()
	if len(batches) != 1 || len(batches[0]) != 5 || len(r.queue) != 0 || told != 5 {
		t.Fatalf("%d batches, %d queued, %d told", len(batches), len(r.queue), told)
	}
	for _, p := range batches[0] {
		if p.Ordinal%2 == 0 {
			t.Errorf("ordinal %d was abandoned", p.Ordinal)
		}
	}
}
