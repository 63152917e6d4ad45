// Load takes a fan-out through its whole life in one process, server, worker and client, and prints what it cost as
// a line of JSON. It is a program of its own so that its memory is its own.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/server"
	"github.com/umbelhq/umbel/worker"
)

// Figures is what is printed.
type Figures struct {
	Rows             int     `json:"rows"`
	StartPerSecond   float64 `json:"start_rows_per_second"`
	RunPerSecond     float64 `json:"run_rows_per_second"`
	ReadPerSecond    float64 `json:"read_rows_per_second"`
	PendingBytes     float64 `json:"bytes_a_row_after_commit"`
	ClosedBytes      float64 `json:"bytes_a_row_after_close_and_ordered_read"`
	PeakMB           float64 `json:"peak_rss_mb"`
	StartCPUMicros   float64 `json:"redis_cpu_us_a_row_start"`
	RunCPUMicros     float64 `json:"redis_cpu_us_a_row_run"`
	ReadCPUMicros    float64 `json:"redis_cpu_us_a_row_read"`
	OrderedCPUMicros float64 `json:"redis_cpu_us_a_row_ordered_read"`
}

func main() {
	url := flag.String("redis", "", "URL of a Redis that nobody else uses")
	n := flag.Int("n", 1_000_000, "rows")
	input := flag.Int("input", 100, "bytes of an input")
	flag.Parse()
	slog.SetLogLoggerLevel(slog.LevelWarn)
	f, err := run(context.Background(), *url, *n, *input) //nolint:forbidigo // this is main
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(f)
	}
	if err != nil {
		slog.Error("load failed", "err", err)
		os.Exit(1)
	}
}

var activity = umbel.Define[umbel.Payload, umbel.Payload]("load")

func run(ctx context.Context, url string, n, size int) (f Figures, err error) {
	opts, err := redis.ParseURL(url)
	if err != nil {
		return f, err
	}
	rdb := redis.NewClient(opts)
	defer func() { err = errors.Join(err, rdb.Close()) }()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	engine, err := server.Open(ctx, rdb, server.Config{Logger: log})
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	c, err := client.New(engine, client.Config{})
	if err != nil {
		return f, err
	}
	m := meter{ctx: ctx, rdb: rdb, rows: float64(n)}
	f.Rows = n
	empty := m.memory()

	m.start()
	fanOut, err := client.FanOut(ctx, c, activity, inputs(n, size), client.WorkflowID("load"))
	if err != nil {
		return f, err
	}
	f.StartPerSecond, f.StartCPUMicros = m.stop()
	f.PendingBytes = (m.memory() - empty) / m.rows

	m.start()
	if err := work(ctx, engine, log, fanOut); err != nil {
		return f, err
	}
	f.RunPerSecond, f.RunCPUMicros = m.stop()

	m.start()
	if err := read(ctx, fanOut, n); err != nil {
		return f, err
	}
	f.ReadPerSecond, f.ReadCPUMicros = m.stop()
	m.start()
	if err := readOrdered(ctx, engine, n); err != nil {
		return f, err
	}
	_, f.OrderedCPUMicros = m.stop()
	f.ClosedBytes = (m.memory() - empty) / m.rows
	f.PeakMB = peak()
	return f, m.err
}

func inputs(n, size int) iter.Seq[umbel.Payload] {
	data := []byte(strings.Repeat("0123456789", size/10+1)[:size])
	return func(yield func(umbel.Payload) bool) {
		for range n {
			if !yield(umbel.Payload{ContentType: "text/plain", Data: data}) {
				return
			}
		}
	}
}

// work runs all rows on one worker of 100 slots.
func work(ctx context.Context, engine *server.Server, log *slog.Logger, fanOut *client.Run[umbel.Payload]) error {
	w, err := worker.New(engine, worker.Config{Concurrency: 100, Logger: log})
	if err != nil {
		return err
	}
	out := umbel.Payload{ContentType: "text/plain", Data: []byte("twenty bytes, exact!")}
	worker.Handle(w, activity, func(context.Context, umbel.Payload) (umbel.Payload, error) { return out, nil })
	working, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- w.Run(working) }()
	err = fanOut.Wait(ctx)
	stop()
	return errors.Join(err, <-done)
}

// read streams the results as they were recorded.
func read(ctx context.Context, fanOut *client.Run[umbel.Payload], n int) error {
	count := 0
	for r, err := range fanOut.Results(ctx) {
		if err != nil {
			return err
		}
		if r.Err != nil || len(r.Value.Data) != 20 {
			return fmt.Errorf("ordinal %d: %q, %w", r.Ordinal, r.Value.Data, r.Err)
		}
		count++
	}
	if count != n {
		return fmt.Errorf("%d of %d results", count, n)
	}
	return nil
}

// readOrdered reads the results by ordinal, which makes their index.
func readOrdered(ctx context.Context, engine *server.Server, n int) error {
	req := umbel.ResultsRequest{Namespace: umbel.DefaultNamespace, WorkflowID: "load", Ordered: true}
	next := int64(0)
	for {
		page, err := engine.Results(ctx, req)
		if err != nil {
			return err
		}
		for _, r := range page.Results {
			if r.Ordinal != next {
				return fmt.Errorf("ordinal %d comes where %d should", r.Ordinal, next)
			}
			next++
		}
		if page.Done {
			break
		}
		req.Cursor = page.Next
	}
	if next != int64(n) {
		return fmt.Errorf("%d of %d results by ordinal", next, n)
	}
	return nil
}

// meter measures phases: rows a second, and Redis's processor time a row.
type meter struct {
	ctx  context.Context //nolint:containedctx // of this program
	rdb  *redis.Client
	rows float64
	at   time.Time
	cpu  float64
	err  error
}

func (m *meter) start() { m.at, m.cpu = time.Now(), m.used("cpu", "used_cpu_sys", "used_cpu_user") }

func (m *meter) stop() (perSecond, micros float64) {
	perSecond = m.rows / time.Since(m.at).Seconds()
	return perSecond, (m.used("cpu", "used_cpu_sys", "used_cpu_user") - m.cpu) * 1e6 / m.rows
}

func (m *meter) memory() float64 { return m.used("memory", "used_memory") }

// used adds up fields of INFO.
func (m *meter) used(section string, fields ...string) float64 {
	info, err := m.rdb.Info(m.ctx, section).Result()
	if err != nil {
		m.err = err
	}
	sum := 0.0
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		for _, f := range fields {
			if name == f {
				v, err := strconv.ParseFloat(value, 64)
				if err != nil {
					m.err = err
				}
				sum += v
			}
		}
	}
	return sum
}

// peak is the largest resident size of this process so far, in MB; 0 where the system does not say.
func peak() float64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		var kb float64
		if _, err := fmt.Sscanf(line, "VmHWM: %f kB", &kb); err == nil {
			return kb / 1024
		}
	}
	return 0
}
