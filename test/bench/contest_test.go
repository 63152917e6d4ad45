package bench

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testredis"
)

// The contestants, in the order of their turns and of the table.
const (
	bare    = "floor"
	embed   = "embedded" // server, worker and client in one process
	network = "network"  // each in a process of its own
)

var contestants = []string{bare, embed, network}

// scale is how much is measured.
type scale struct {
	rounds  int
	rows    int // of the run that is timed from start to end
	paced   int // that are enqueued at 200 a second
	started int // of the start that nobody runs
}

// The figures of a contestant.
const (
	rowsPerSecond    = "rows/s"
	p50              = "p50 ms"
	p99              = "p99 ms"
	startedPerSecond = "started/s"
	bytesPerRow      = "bytes/row"
	redisPerRow      = "Redis µs/row" // processor time
	cpuPerRow        = "CPU µs/row"   // of all other processes together
)

var metrics = []string{rowsPerSecond, p50, p99, startedPerSecond, bytesPerRow, redisPerRow, cpuPerRow}

// figures holds, for each contestant and metric, one value a round.
type figures map[string]map[string][]float64

func (f figures) add(contestant, metric string, v float64) {
	if f[contestant] == nil {
		f[contestant] = map[string][]float64{}
	}
	f[contestant][metric] = append(f[contestant][metric], v)
}

// contest lets the contestants take turns, each on an empty Redis: one turn with rows that run, one with rows that stay.
func contest(tb testing.TB, s scale) figures {
	tb.Helper()
	r := testredis.Real(tb, testredis.AppendOnly("everysec"))
	f := figures{}
	for range s.rounds {
		for _, name := range contestants {
			running(tb, r, s, f, name)
			wipe(tb, r)
		}
		for _, name := range contestants {
			resting(tb, r, s, f, name)
			wipe(tb, r)
		}
	}
	return f
}

// side is a contestant in its turn.
type side struct {
	role, url string     // of the process that measures
	others    []*process // that it needs
}

func open(tb testing.TB, r *testredis.Redis, name string) side {
	tb.Helper()
	if name != network {
		return side{role: name, url: r.URL}
	}
	server := launch(tb, "server", r.URL)
	url := server.line(tb)
	return side{role: "client", url: url, others: []*process{server, launch(tb, "worker", url)}}
}

// close ends the processes, the server after those that use it.
func (c side) close(tb testing.TB) {
	tb.Helper()
	for _, p := range slices.Backward(c.others) {
		p.end(tb)
	}
}

// cpu is the seconds of processor time that the other processes have used.
func (c side) cpu(tb testing.TB) (seconds float64) {
	tb.Helper()
	for _, p := range c.others {
		seconds += p.cpu(tb)
	}
	return seconds
}

func running(tb testing.TB, r *testredis.Redis, s scale, f figures, name string) {
	tb.Helper()
	c := open(tb, r, name)
	defer c.close(tb)
	redis, others := r.CPU(tb), c.cpu(tb)
	run := measure(tb, c.role, c.url, "run", s.rows)
	f.add(name, rowsPerSecond, float64(s.rows)/run.Seconds)
	f.add(name, redisPerRow, float64((r.CPU(tb)-redis).Nanoseconds())/1e3/float64(s.rows+warm))
	f.add(name, cpuPerRow, (c.cpu(tb)-others+run.CPU)*1e6/float64(s.rows))

	pace := measure(tb, c.role, c.url, "pace", s.paced)
	f.add(name, p50, pace.P50)
	f.add(name, p99, pace.P99)
}

func resting(tb testing.TB, r *testredis.Redis, s scale, f figures, name string) {
	tb.Helper()
	c := open(tb, r, name)
	defer c.close(tb)
	empty := r.UsedMemory(tb)
	start := measure(tb, c.role, c.url, "start", s.started)
	f.add(name, startedPerSecond, float64(s.started)/start.Seconds)
	f.add(name, bytesPerRow, float64(r.UsedMemory(tb)-empty)/float64(s.started+warm))
}

// wipe empties Redis, and its file: a file that grows over the rounds would be written anew in the middle of one.
func wipe(tb testing.TB, r *testredis.Redis) {
	tb.Helper()
	ctx := tb.Context()
	if err := r.Client.FlushAll(ctx).Err(); err != nil {
		tb.Fatal(err)
	}
	if err := r.Client.BgRewriteAOF(ctx).Err(); err != nil && !strings.Contains(err.Error(), "in progress") {
		tb.Fatal(err)
	}
	for {
		info, err := r.Client.Info(ctx, "persistence").Result()
		if err != nil {
			tb.Fatal(err)
		}
		if strings.Contains(info, "aof_rewrite_in_progress:0") && strings.Contains(info, "aof_rewrite_scheduled:0") {
			return
		}
		time.Sleep(10 * time.Millisecond) // Redis tells nobody
	}
}
