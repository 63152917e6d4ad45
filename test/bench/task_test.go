package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	inputBytes  = 100
	resultBytes = 20
	// stampBytes is the length of an instant in ns.
	stampBytes = 19
	// gap between two rows that are enqueued one by one: 200 a second.
	gap = 5 * time.Millisecond
	// warm is how many rows go ahead of what is measured: connections are made, scripts loaded.
	warm = 100
)

// inputs yields n inputs. Each begins with the instant at which it was taken; on one machine all processes have the
// same clock.
func inputs(n int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for range n {
			input := bytes.Repeat([]byte{'.'}, inputBytes)
			strconv.AppendInt(input[:0], time.Now().UnixNano(), 10)
			if !yield(input) {
				return
			}
		}
	}
}

// arrived is the handler: the result is how long ago the input was taken, in ns.
func arrived(input []byte) []byte {
	taken, err := strconv.ParseInt(string(input[:stampBytes]), 10, 64)
	if err != nil {
		return nil
	}
	return fmt.Appendf(nil, "%0*d", resultBytes, time.Now().UnixNano()-taken)
}

// found is what a task has measured.
type found struct {
	Seconds float64 // by the clock
	CPU     float64 // seconds of processor time of the process that did it
	P50     float64 // ms, as P99
	P99     float64
}

// tasks are what a process can be asked to measure, with n rows.
var tasks = map[string]func(ctx context.Context, p player, n int) (found, error){
	"run": func(ctx context.Context, p player, n int) (found, error) {
		return timed(n, func(n int) error { return p.run(ctx, n) })
	},
	"start": func(ctx context.Context, p player, n int) (found, error) {
		return timed(n, func(n int) error { return p.start(ctx, n) })
	},
	"pace": paceTask,
}

// timed calls do for some rows to warm up, then measures it for n.
func timed(n int, do func(n int) error) (found, error) {
	if err := do(warm); err != nil {
		return found{}, err
	}
	begun, cpu := time.Now(), cpuSeconds()
	err := do(n)
	return found{Seconds: time.Since(begun).Seconds(), CPU: cpuSeconds() - cpu}, err
}

// paceTask enqueues rows one by one, each at its instant whether or not those before it are through.
func paceTask(ctx context.Context, p player, n int) (found, error) {
	s := p.single(ctx, warm+n)
	errs := make([]error, warm+n)
	var all sync.WaitGroup
	for i, begun := 0, time.Now(); i < warm+n; i++ {
		time.Sleep(time.Until(begun.Add(time.Duration(i) * gap)))
		all.Go(func() { errs[i] = s.enqueue(i) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return found{}, err
	}
	results, err := s.results()
	if err != nil {
		return found{}, err
	}
	millis := make([]float64, warm+n)
	for i, result := range results {
		ns, err := strconv.ParseInt(string(result), 10, 64)
		if err != nil {
			return found{}, fmt.Errorf("row %d: result %q: %w", i, result, err)
		}
		millis[i] = float64(ns) / 1e6
	}
	millis = millis[warm:]
	slices.Sort(millis)
	return found{P50: millis[n/2], P99: millis[n*99/100]}, nil
}
