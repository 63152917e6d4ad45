// Package floor is the least that somebody would write by hand to run many rows on Redis: pipelined HSET and ZADD,
// one script that pops and one that acknowledges, two goroutines. It has no server, no lease, no retry, no history
// and no gather; a process that dies loses what it holds. Umbel's speed is measured against it, in the same run.
// It stays as it is, so that ratios of different versions can be compared.
package floor

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Batch is how many rows one pipeline, one pop and one acknowledgement hold.
const Batch = 100

// idle is how long a goroutine that finds nothing waits before it looks again.
const idle = time.Millisecond

//go:embed pop.lua
var popSource string

//go:embed ack.lua
var ackSource string

var (
	popScript = redis.NewScript(popSource)
	ackScript = redis.NewScript(ackSource)
)

// Queue is a queue of rows in Redis: a hash for each row, and a sorted set of those that wait. It is safe for
// concurrent use. Its scripts build the keys of rows, so a Cluster cannot run them.
type Queue struct {
	rdb      redis.UniversalClient
	due, row string // the key of the sorted set, and what begins that of a row
}

// New returns the queue under a prefix that begins its keys. It makes no call.
func New(rdb redis.UniversalClient, prefix string) *Queue {
	return &Queue{rdb: rdb, due: prefix + ":due", row: prefix + ":row:"}
}

// Row is a row that was popped.
type Row struct {
	ID    string
	Input string
}

// Enqueue adds a row for each input, in pipelines of [Batch], and returns how many it added. Rows are known by
// their number, from first on: two calls must not use one twice. Rows can be popped as soon as their pipeline is
// through. It stops at the first error, also when ctx ends; the rows of the pipelines before it stay.
func (q *Queue) Enqueue(ctx context.Context, first int, inputs iter.Seq[string]) (int, error) {
	pipe, added := q.rdb.Pipeline(), 0
	send := func() error {
		waiting := pipe.Len() / 2
		if waiting == 0 {
			return nil
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return fmt.Errorf("floor: enqueue: %w", err)
		}
		added += waiting
		return nil
	}
	next := first
	for input := range inputs {
		id := strconv.Itoa(next)
		pipe.HSet(ctx, q.row+id, "input", input, "state", "pending")
		pipe.ZAdd(ctx, q.due, redis.Z{Score: float64(time.Now().UnixMilli()), Member: id})
		next++
		if pipe.Len() < 2*Batch {
			continue
		}
		if err := send(); err != nil {
			return added, err
		}
	}
	return added, send()
}

// Pop takes up to [Batch] rows that wait, the earliest first; none is no error.
func (q *Queue) Pop(ctx context.Context) ([]Row, error) {
	flat, err := popScript.Run(ctx, q.rdb, []string{q.due, q.row}, time.Now().UnixMilli(), Batch).StringSlice()
	if err != nil {
		return nil, fmt.Errorf("floor: pop: %w", err)
	}
	rows := make([]Row, len(flat)/2)
	for i := range rows {
		rows[i] = Row{ID: flat[2*i], Input: flat[2*i+1]}
	}
	return rows, nil
}

// Ack stores the results of rows, each at the index of its row.
func (q *Queue) Ack(ctx context.Context, rows []Row, results []string) error {
	if len(rows) != len(results) {
		return fmt.Errorf("floor: ack: %d rows and %d results", len(rows), len(results))
	}
	args := make([]any, 0, 2*len(rows))
	for i, row := range rows {
		args = append(args, row.ID, results[i])
	}
	if err := ackScript.Run(ctx, q.rdb, []string{q.row}, args...).Err(); err != nil {
		return fmt.Errorf("floor: ack: %w", err)
	}
	return nil
}

// Result returns the result of the row with this number; ok is false while there is none.
func (q *Queue) Result(ctx context.Context, number int) (_ string, ok bool, err error) {
	result, err := q.rdb.HGet(ctx, q.row+strconv.Itoa(number), "result").Result()
	if errors.Is(err, redis.Nil) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("floor: result: %w", err)
	}
	return result, true, nil
}
