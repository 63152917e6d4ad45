package stack

import (
	"sync"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
)

// However many wait for a run, one look a second is for all of them, and its close ends all waits at once.
func TestWaitersShareALook(t *testing.T) {
	onMini(t, func(s *stack) {
		rdb := s.redis.NewClient(s.t)
		var sent commands
		rdb.AddHook(&sent)
		e := s.openOn(rdb)
		s.start(e, "w", rows(1))
		idle := func(d time.Duration) int64 {
			before := sent.n.Load()
			time.Sleep(d)
			return sent.n.Load() - before
		}
		time.Sleep(10 * time.Second)
		alone := idle(10 * time.Second)

		var waiting sync.WaitGroup
		for range 500 {
			waiting.Go(func() {
				d, err := e.Describe(s.t.Context(), umbel.DescribeRequest{Namespace: ns, WorkflowID: "w", Wait: umbel.MaxPollWait})
				if err != nil || d.Status != umbel.StatusCompleted {
					s.t.Errorf("%+v, %v", d, err)
				}
			})
		}
		time.Sleep(2 * time.Second)
		if waited := idle(10 * time.Second); waited > alone+100 {
			s.t.Errorf("%d commands in ten seconds while 500 wait, %d while nobody does", waited, alone)
		}
		s.finish(e, s.claim(e, 1))
		began := time.Now()
		waiting.Wait()
		if d := time.Since(began); d > 100*time.Millisecond {
			s.t.Errorf("the waits ended %v after the close", d)
		}
	})
}
