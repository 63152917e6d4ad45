package check

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/umbelhq/umbel"
)

// schedule is all that is decided before it is played. What goroutines do meanwhile, and what the product draws itself,
// is not: the same schedule may be played in several ways.
type schedule struct {
	Seed   uint64
	Skew   time.Duration // Redis's clock before everybody else's
	H2     bool
	Shards int
	Runs   []runPlan
	Faults []fault
}

// runPlan is a run that is started.
type runPlan struct {
	ID         umbel.WorkflowID
	At         time.Duration
	Staged     bool // in pieces, else in one call
	Twice      bool // by two clients at a time
	Attempts   int
	Rows       []rowPlan
	CancelAt   time.Duration // after the start, 0: never
	CancelRows []int64       // empty: the run
}

// rowPlan is a row, and what its handler does.
type rowPlan struct {
	Ordinal   int64
	Type      string
	Node      string
	Delay     time.Duration
	NotBefore time.Duration // after the schedule's begin, by Redis's clock; 0: none
	Size      int
	Takes     time.Duration
	Fails     int  // so many attempts fail
	Permanent bool // the first failure is non-retryable
	Overruns  bool // the first attempt ignores its context, and goes on beyond start-to-close
}

// fault is something that goes wrong.
type fault struct {
	Kind   string
	At     time.Duration
	Target int           // which server, worker or caller
	What   string        // which verb or script
	For    time.Duration // how long
	Count  int           // how many calls
}

func (f fault) String() string {
	return fmt.Sprintf("%v %s %d %s for %v, %d times", f.At, f.Kind, f.Target, f.What, f.For, f.Count)
}

// The kinds of faults that a schedule places; slow handlers are of the rows.
const (
	loseReply      = "reply lost"           // of a verb, which was applied
	loseRequest    = "request lost"         // of a verb, which was not applied
	sendTwice      = "call delivered twice" // of a verb, the second time a little later
	loseRedisReply = "Redis reply lost"     // of a script or a read, which was applied
	redisAway      = "Redis away"           // for one server
	allRedisAway   = "Redis away for all"
	cutRedis       = "Redis connections killed"
	cutCaller      = "caller's connections killed"
	flushScripts   = "SCRIPT FLUSH"
	pauseWorker    = "worker paused"
	killWorker     = "worker killed"
	stopWorker     = "worker stopped"
	killServer     = "server killed"
	stopServer     = "server stopped"
	slowHandler    = "handler beyond start-to-close"
)

var kinds = []string{
	loseReply, loseReply, loseRequest, sendTwice, sendTwice, loseRedisReply, loseRedisReply, redisAway, allRedisAway, cutRedis,
	cutCaller, flushScripts, pauseWorker, killWorker, stopWorker, killServer, stopServer,
}

// verbs of the seam, and how often a fault is theirs.
var (
	lossy     = strings.Fields("begin stage commit discard poll poll leave renew renew report report report describe results cancel history list")
	repeated  = strings.Fields("begin stage commit commit discard renew report report report cancel leave")
	redisCall = strings.Fields("claim claim settle settle settle commit stage renew deliver sweep cancel other")
)

const (
	servers    = 2
	lease      = 2 * time.Second
	horizon    = 4 * time.Second // faults begin before
	limit      = 3 * time.Minute // by then every run is closed
	bound      = time.Second     // start-to-close
	minRows    = 50
	pieceOfRun = 10 // rows of a staging call
)

// crew are the workers: what each serves. Every type and node has one, and most have two.
var crew = []struct {
	node  string
	types []string
}{
	{"n0", []string{"a", "b"}}, {"", []string{"a", "b", "c"}}, {"n1", []string{"a", "c"}}, {"n0", []string{"c"}},
}

// draw makes the schedule of a seed.
func draw(seed uint64) schedule {
	r := rand.New(rand.NewPCG(seed, 0))
	between := func(a, b time.Duration) time.Duration {
		return a + time.Duration(r.Int64N(int64((b-a)/time.Millisecond)+1))*time.Millisecond
	}
	s := schedule{Seed: seed, H2: r.IntN(2) == 0, Shards: 1}
	if r.IntN(4) == 0 {
		s.Shards = 2
	}
	s.Skew = []time.Duration{0, 90 * time.Minute, -90 * time.Minute, 7 * time.Second, -7 * time.Second}[r.IntN(5)]
	left := minRows + r.IntN(20)
	runs := 3 + r.IntN(2)
	for i := range runs {
		p := runPlan{
			ID: umbel.WorkflowID(fmt.Sprintf("w%d", i)), At: between(0, 2*time.Second), Staged: r.IntN(2) == 0,
			Twice: r.IntN(4) == 0, Attempts: 4 + r.IntN(3),
		}
		if r.IntN(4) == 0 {
			p.Attempts = 2
		}
		n := left / (runs - i)
		left -= n
		for o := range n {
			p.Rows = append(p.Rows, drawRow(r, int64(o), between))
		}
		if r.IntN(3) == 0 {
			p.CancelAt = between(time.Millisecond, 3*time.Second)
			if r.IntN(2) == 0 {
				for range 1 + r.IntN(5) {
					p.CancelRows = append(p.CancelRows, int64(r.IntN(n)))
				}
			}
		}
		s.Runs = append(s.Runs, p)
	}
	for range 6 + r.IntN(5) {
		f := fault{Kind: kinds[r.IntN(len(kinds))], At: between(0, horizon), Target: r.IntN(12), For: between(0, 2*lease), Count: 1 + r.IntN(4)}
		switch f.Kind {
		case loseReply, loseRequest:
			f.What = lossy[r.IntN(len(lossy))]
		case sendTwice:
			f.What = repeated[r.IntN(len(repeated))]
		case loseRedisReply:
			f.What = redisCall[r.IntN(len(redisCall))]
		case pauseWorker:
			f.For += lease + lease/2
		}
		s.Faults = append(s.Faults, f)
	}
	return s
}

func drawRow(r *rand.Rand, o int64, between func(a, b time.Duration) time.Duration) rowPlan {
	p := rowPlan{Ordinal: o, Type: string("abc"[r.IntN(3)]), Size: r.IntN(200), Takes: between(0, 40*time.Millisecond)}
	switch r.IntN(6) {
	case 0:
		p.Node = "n0"
	case 1:
		if p.Type != "b" {
			p.Node = "n1"
		}
	}
	switch r.IntN(8) {
	case 0:
		p.Delay = between(time.Millisecond, 4*time.Second)
	case 1:
		p.NotBefore = between(time.Millisecond, 5*time.Second)
	}
	switch r.IntN(12) {
	case 0, 1:
		p.Fails = 1 + r.IntN(2)
	case 2:
		p.Fails, p.Permanent = 1, true
	case 3:
		p.Overruns = true
	case 4, 5:
		p.Takes = between(bound/2, bound-100*time.Millisecond)
		if r.IntN(2) == 0 {
			p.Fails = 1
		}
	case 6:
		p.Fails = 2 + r.IntN(4) // more than there are attempts, perhaps
	}
	return p
}

// input is the payload of a row, which has every byte in it sooner or later.
func (s schedule) input(run int, p rowPlan) umbel.Payload {
	r := rand.New(rand.NewPCG(s.Seed, uint64(run)<<32|uint64(p.Ordinal)))
	data := make([]byte, p.Size)
	for i := range data {
		data[i] = byte(r.IntN(256))
	}
	return umbel.Payload{ContentType: []string{"application/octet-stream", "application/json", ""}[r.IntN(3)], Data: data}
}

// size says what is in a schedule, for who reads how it shrinks.
func (s schedule) size() string {
	rows := 0
	for _, r := range s.Runs {
		rows += len(r.Rows)
	}
	return fmt.Sprintf("%d runs, %d rows, %d faults", len(s.Runs), rows, len(s.Faults))
}

// String is a line for each run, row that is not plain, and fault.
func (s schedule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Redis's clock is %v ahead, HTTP/2: %t, %d shards\n", s.Skew, s.H2, s.Shards)
	for _, r := range s.Runs {
		fmt.Fprintf(&b, "%v %s starts: %d rows, staged: %t, twice: %t, %d attempts, cancelled %v later: %v\n",
			r.At, r.ID, len(r.Rows), r.Staged, r.Twice, r.Attempts, r.CancelAt, r.CancelRows)
		for _, p := range r.Rows {
			fmt.Fprintf(&b, "  %+v\n", p)
		}
	}
	for _, f := range s.Faults {
		fmt.Fprintln(&b, f)
	}
	return b.String()
}
