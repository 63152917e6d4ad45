package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/umbelhq/umbel"
)

// Factor is the contract between client and worker.
var Factor = umbel.Define[int, string]("factor")

// queue keeps the rows of this program from other workers of the same servers.
const queue = "resume"

// factor returns the line that the command factor prints. First it says in the log, if there is one, that it has begun.
func (o options) factor(ctx context.Context, n int) (string, error) {
	if err := o.note(n); err != nil {
		return "", err
	}
	select { // as if it were work
	case <-time.After(o.each):
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d:", n)
	for p := 2; n > 1; p++ {
		for ; n%p == 0; n /= p {
			fmt.Fprintf(&b, " %d", p)
		}
	}
	return b.String(), nil
}

// note adds a line to the log.
func (o options) note(n int) error {
	if o.log == "" {
		return nil
	}
	f, err := os.OpenFile(o.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return umbel.NonRetryable(err)
	}
	_, err = fmt.Fprintln(f, n)
	return errors.Join(err, f.Close())
}
