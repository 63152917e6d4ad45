package bench

import (
	"context"
	"fmt"
	"iter"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/internal/floor"
)

// player is a contestant as the tasks see it: what starts rows, in one process.
type player interface {
	// run takes n rows from the first enqueued to the last acknowledged.
	run(ctx context.Context, n int) error
	// start enqueues n rows that nobody runs.
	start(ctx context.Context, n int) error
	// single prepares for n rows that are enqueued one by one.
	single(ctx context.Context, n int) singles
}

// singles are rows that are enqueued one by one.
type singles struct {
	enqueue func(i int) error        // safe for concurrent use, each i once
	results func() ([][]byte, error) // waits for them
}

// floorPlayer numbers its rows on, over all that it does.
type floorPlayer struct {
	q    *floor.Queue
	next int
}

func (p *floorPlayer) run(ctx context.Context, n int) error {
	worked := p.work(ctx, n)
	if err := p.start(ctx, n); err != nil {
		return err
	}
	return <-worked
}

func (p *floorPlayer) work(ctx context.Context, n int) <-chan error {
	worked := make(chan error, 1)
	go func() {
		worked <- p.q.Work(ctx, n, func(input string) string { return string(arrived([]byte(input))) })
	}()
	return worked
}

func (p *floorPlayer) start(ctx context.Context, n int) error {
	added, err := p.q.Enqueue(ctx, p.next, texts(n))
	p.next += added
	return err
}

func texts(n int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for input := range inputs(n) {
			if !yield(string(input)) {
				return
			}
		}
	}
}

func (p *floorPlayer) single(ctx context.Context, n int) singles {
	first, worked := p.next, p.work(ctx, n)
	p.next += n
	return singles{
		enqueue: func(i int) error {
			_, err := p.q.Enqueue(ctx, first+i, texts(1))
			return err
		},
		results: func() ([][]byte, error) {
			if err := <-worked; err != nil {
				return nil, err
			}
			all := make([][]byte, n)
			for i := range all {
				result, ok, err := p.q.Result(ctx, first+i)
				if err != nil || !ok {
					return nil, fmt.Errorf("row %d has no result: %w", i, err)
				}
				all[i] = []byte(result)
			}
			return all, nil
		},
	}
}

// The worker runs the first; nobody runs the second.
var (
	activity = umbel.Define[umbel.Payload, umbel.Payload]("bench")
	parked   = umbel.Define[umbel.Payload, umbel.Payload]("parked")
)

// umbelPlayer is a client. The worker is elsewhere.
type umbelPlayer struct{ c *client.Client }

func payloads(n int) iter.Seq[umbel.Payload] {
	return func(yield func(umbel.Payload) bool) {
		for input := range inputs(n) {
			if !yield(umbel.Payload{ContentType: "text/plain", Data: input}) {
				return
			}
		}
	}
}

func (p *umbelPlayer) run(ctx context.Context, n int) error {
	run, err := client.FanOut(ctx, p.c, activity, payloads(n))
	if err != nil {
		return err
	}
	return run.Wait(ctx)
}

func (p *umbelPlayer) start(ctx context.Context, n int) error {
	_, err := client.FanOut(ctx, p.c, parked, payloads(n))
	return err
}

func (p *umbelPlayer) single(ctx context.Context, n int) singles {
	runs := make([]*client.Run[umbel.Payload], n)
	return singles{
		enqueue: func(i int) (err error) {
			runs[i], err = client.FanOut(ctx, p.c, activity, payloads(1))
			return err
		},
		results: func() ([][]byte, error) {
			var all [][]byte
			for _, run := range runs {
				values, err := run.Gather(ctx)
				if err != nil {
					return nil, err
				}
				for _, v := range values {
					all = append(all, v.Data)
				}
			}
			return all, nil
		},
	}
}
