package check

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/internal/memnet"
	"github.com/umbelhq/umbel/internal/memredis"
	"github.com/umbelhq/umbel/outbox/outboxtest"
)

// world is what a schedule is played in: a Redis, servers, workers and clients, in one bubble.
type world struct {
	schedule

	t       *testing.T
	redis   *memredis.Server
	net     memnet.Network
	scripts map[string]string
	tally   *tally
	begun   time.Time
	servers []*slot
	logbook

	mu      sync.Mutex
	random  *rand.Rand
	armed   map[string]int // calls that are to be lost or repeated, by kind and verb
	workers []*hand
	callers []*caller
	born    int // workers so far
}

const namespace = umbel.DefaultNamespace

// play plays a schedule and returns what does not hold.
func play(t *testing.T, s schedule, scripts map[string]string, count *tally) (problems []string) {
	t.Helper()
	return inBubble(t, func(t *testing.T) []string {
		w := &world{
			schedule: s, t: t, redis: memredis.Open(), scripts: scripts, tally: count, begun: time.Now(),
			random: rand.New(rand.NewPCG(s.Seed, 1)), armed: map[string]int{},
		}
		w.logbook.init()
		defer w.redis.Close()
		w.setClock()
		for i := range servers {
			w.servers = append(w.servers, &slot{w: w, address: string(rune('a'+i)) + ":7890", turn: make(chan struct{}, 1)})
		}
		for _, sl := range w.servers {
			sl.open()
		}
		for i := range crew {
			w.workers = append(w.workers, w.hire(i))
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		var parts sync.WaitGroup
		for _, f := range s.Faults {
			parts.Go(func() {
				time.Sleep(f.At)
				w.inject(f)
			})
		}
		for i, p := range s.Runs {
			parts.Go(func() { w.run(ctx, i, p) })
		}
		parts.Wait()
		w.disarm()
		w.settleDown()
		w.end()
		w.verify()
		problems := w.problems
		if err := outboxtest.CheckRedis(t, w.redis.Client(), "umbel"); err != nil {
			problems = append(problems, "what Redis keeps: "+err.Error())
		}
		return problems
	})
}

// settleDown waits until what was claimed in vain has lapsed: within a lease, and one more after an outage. One server is
// enough for that.
func (w *world) settleDown() {
	for _, sl := range w.servers[1:] {
		sl.stop()
	}
	for range 3 * int(lease/time.Second) {
		time.Sleep(time.Second)
		if len(w.leftClaimed()) == 0 {
			return
		}
	}
}

// leftClaimed are the keys that say that something is claimed.
func (w *world) leftClaimed() []string {
	return slices.DeleteFunc(w.redis.Engine().Keys(), func(key string) bool {
		return !strings.HasSuffix(key, ":claims") && !strings.HasSuffix(key, ":leases")
	})
}

// now is the time by Redis's clock.
func (w *world) now() time.Time { return time.Now().Add(w.Skew) }

func (w *world) setClock() { w.redis.Engine().SetTime(w.now().UTC()) }

// arm makes the next calls of a verb, or of a script, meet a fault.
func (w *world) arm(f fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed[f.Kind+" "+f.What] += f.Count
}

func (w *world) disarm() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.armed)
}

// take says whether a call meets a fault, and counts it.
func (w *world) take(kind, what string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := kind + " " + what
	if w.armed[k] == 0 {
		return false
	}
	w.armed[k]--
	w.tally.add("fault", k)
	w.trouble = append(w.trouble, w.now())
	return true
}

// lateness is how much later a call is delivered again.
func (w *world) lateness() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return []time.Duration{0, time.Millisecond, 300 * time.Millisecond, lease + time.Second}[w.random.IntN(4)]
}

// connect returns a way to the servers, and what ends it.
func (w *world) connect(name string) *caller {
	c := &caller{w: w, name: name}
	c.alive, c.die = context.WithCancel(context.WithoutCancel(w.t.Context()))
	p := new(http.Protocols)
	p.SetHTTP1(!w.H2)
	p.SetUnencryptedHTTP2(w.H2)
	tr := &http.Transport{DialContext: c.dial, Protocols: p, DisableCompression: true, MaxIdleConnsPerHost: 20}
	urls := ""
	for _, sl := range w.servers {
		urls += "," + sl.address
	}
	conn, err := client.Dial(urls[1:], client.HTTPClient(&http.Client{Transport: tr}))
	if err != nil {
		w.t.Fatal(err)
	}
	c.to = conn
	w.mu.Lock()
	w.callers = append(w.callers, c)
	w.mu.Unlock()
	context.AfterFunc(w.t.Context(), tr.CloseIdleConnections)
	return c
}

// end stops everything, and waits for it.
func (w *world) end() {
	for _, h := range w.workers {
		h.stop()
	}
	w.mu.Lock()
	callers := w.callers
	w.mu.Unlock()
	for _, c := range callers {
		c.late.Wait()
	}
	for _, sl := range w.servers {
		sl.stop()
	}
	for _, c := range callers {
		c.die()
		c.cut()
	}
}

// inject makes a fault happen.
func (w *world) inject(f fault) {
	sl := w.servers[f.Target%len(w.servers)]
	switch f.Kind {
	case loseReply, loseRequest, sendTwice, loseRedisReply:
		w.arm(f)
		return
	}
	w.tally.add("fault", f.Kind)
	w.troubled()
	switch f.Kind {
	case redisAway:
		sl.link().leave(f.For)
	case allRedisAway:
		for _, sl := range w.servers {
			sl.link().leave(f.For)
		}
	case cutRedis:
		sl.link().cut()
	case cutCaller:
		w.mu.Lock()
		c := w.callers[f.Target%len(w.callers)]
		w.mu.Unlock()
		c.cut()
	case flushScripts:
		if err := w.redis.Client().ScriptFlush(w.t.Context()).Err(); err != nil {
			w.t.Error(err)
		}
	case pauseWorker:
		w.member(f).caller.pause(f.For)
	case killWorker:
		w.member(f).kill()
		time.Sleep(f.For)
		w.replace(f)
	case stopWorker:
		w.member(f).stop()
		w.replace(f)
	case killServer:
		sl.kill()
		time.Sleep(f.For)
		sl.open()
	case stopServer:
		sl.stop()
		sl.open()
	}
	w.troubled()
}

func (w *world) member(f fault) *hand {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.workers[f.Target%len(w.workers)]
}

func (w *world) replace(f fault) {
	i := f.Target % len(crew)
	h := w.hire(i)
	w.mu.Lock()
	old := w.workers[i]
	w.workers[i] = h
	w.mu.Unlock()
	old.stop() // another fault may have put it there
}

// quiet is a log that nobody reads.
var quiet = slog.New(slog.DiscardHandler)
