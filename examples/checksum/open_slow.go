//go:build slowreads

package main

import (
	"context"
	"math/rand/v2"
	"os"
	"time"
)

// open is what the tests that kill this program build it with: they want work under way whenever they strike,
// so one file in fifty takes 20 to 200 ms.
func open(ctx context.Context, path string) (*os.File, error) {
	if rand.IntN(50) == 0 {
		slow := time.NewTimer(time.Duration(20+rand.IntN(181)) * time.Millisecond)
		defer slow.Stop()
		select {
		case <-slow.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return os.Open(path)
}
