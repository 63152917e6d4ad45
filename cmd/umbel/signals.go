package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// signals turns what a terminal or a supervisor sends into the end of a context. The second signal ends the
// process at once, unless a command asked for it with [signals.second]; then the third does.
type signals struct {
	c      chan os.Signal
	done   chan struct{}
	again  chan struct{}
	waited atomic.Bool
}

// notify returns a context that ends with the first SIGINT or SIGTERM, or when the terminal goes away.
func notify(ctx context.Context) (context.Context, *signals) {
	ctx, cancel := context.WithCancelCause(ctx)
	s := &signals{c: make(chan os.Signal, 1), done: make(chan struct{}), again: make(chan struct{})}
	signal.Notify(s.c, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		signal.Notify(s.c, syscall.SIGHUP)
	}
	go func() {
		for n := 0; ; n++ {
			select {
			case sig := <-s.c:
				switch {
				case n == 0:
					cancel(fmt.Errorf("received %v", sig))
				case s.waited.CompareAndSwap(true, false):
					close(s.again)
				default:
					os.Exit(exitInterrupted)
				}
			case <-s.done:
				cancel(nil)
				return
			}
		}
	}()
	return ctx, s
}

// second returns a channel that is closed by the second signal.
func (s *signals) second() <-chan struct{} {
	s.waited.Store(true)
	return s.again
}

func (s *signals) stop() {
	signal.Stop(s.c)
	close(s.done)
}
