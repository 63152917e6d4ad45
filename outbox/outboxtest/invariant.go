package outboxtest

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// CheckRedis reports what does not hold of an installation in Redis, and must whenever no script runs. Of every
// run: each row is in exactly one of the due sets, a claim and the resolved (promise 11); rows in spans − holes +
// records + resolved = N; its counters, its route's backlog and its bitmaps agree. Of every shard: each claim has
// a lease and as many rows as it counts; each route is ready at the instant of its first run; its lists of runs have
// every run among all of its namespace and among those of its status, and nothing else. And nothing of an open run
// expires (promise 16). It reads everything: it is for tests.
func CheckRedis(t testing.TB, rdb redis.UniversalClient, prefix string) error {
	t.Helper()
	k := Keyspace{Redis: rdb, Prefix: prefix}
	shards := map[string]*shard{}
	names, err := k.Names(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = rdb.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for _, name := range names {
			tag, rest, _ := strings.Cut(strings.TrimPrefix(name, prefix+":"), ":")
			if shards[tag] == nil {
				shards[tag] = newShard(tag)
			}
			shards[tag].read(t, p, name, rest)
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatalf("read what is kept: %v", err)
	}
	var problems []error
	for _, s := range shards {
		s.check()
		problems = append(problems, s.problems...)
	}
	return errors.Join(problems...)
}

// shard is one shard's keys as read, and what is wrong with them.
type shard struct {
	tag      string
	hashes   map[string]*redis.MapStringStringCmd
	sets     map[string]*redis.ZSliceCmd
	bitmaps  map[string]*redis.StringCmd
	lives    map[string]*redis.DurationCmd
	backlog  map[string]int64 // by what the runs count
	held     map[string]int64 // by nonce: rows that name it
	closed   map[string]bool
	listed   map[string]bool // list and member that a run must have
	problems []error
}

func newShard(tag string) *shard {
	return &shard{
		tag: tag, hashes: map[string]*redis.MapStringStringCmd{}, sets: map[string]*redis.ZSliceCmd{},
		bitmaps: map[string]*redis.StringCmd{}, lives: map[string]*redis.DurationCmd{},
		backlog: map[string]int64{}, held: map[string]int64{}, closed: map[string]bool{}, listed: map[string]bool{},
	}
}

func (s *shard) read(t testing.TB, p redis.Pipeliner, name, rest string) {
	ctx := t.Context()
	s.lives[rest] = p.PTTL(ctx, name)
	switch kind, _, _ := strings.Cut(rest, ":"); kind {
	case "run", "rows", "leases", "backlog":
		s.hashes[rest] = p.HGetAll(ctx, name)
	case "due", "route", "ready", "claims", "runs":
		s.sets[rest] = p.ZRangeWithScores(ctx, name, 0, -1)
	case "resolved", "failed", "cancelled", "rest":
		s.bitmaps[rest] = p.Get(ctx, name)
	}
}

func (s *shard) wrongf(format string, args ...any) {
	s.problems = append(s.problems, fmt.Errorf("shard "+s.tag+": "+format, args...))
}

func (s *shard) hash(name string) map[string]string {
	if c := s.hashes[name]; c != nil {
		return c.Val()
	}
	return nil
}

func (s *shard) set(name string) []redis.Z {
	if c := s.sets[name]; c != nil {
		return c.Val()
	}
	return nil
}

func (s *shard) check() {
	for name := range s.hashes {
		if id, ok := strings.CutPrefix(name, "run:"); ok {
			s.checkRun(id)
		}
	}
	for route, text := range s.hash("backlog") {
		if n, _ := strconv.ParseInt(text, 10, 64); n != s.backlog[route] || n == 0 {
			s.wrongf("backlog of %q is %d, runs have %d pending", route, n, s.backlog[route])
		}
		delete(s.backlog, route)
	}
	for route, n := range s.backlog {
		if n != 0 {
			s.wrongf("backlog of %q is absent, runs have %d pending", route, n)
		}
	}
	s.checkClaims()
	s.checkLists()
	ready := map[string]float64{}
	for _, z := range s.set("ready") {
		ready[z.Member.(string)] = z.Score //nolint:forcetypeassert // go-redis says so
	}
	for name, set := range s.sets {
		route, ok := strings.CutPrefix(name, "route:")
		if !ok {
			continue
		}
		if at, ok := ready[route]; !ok || at != set.Val()[0].Score {
			s.wrongf("route %q is ready at %v (%v), its runs are %v", route, at, ok, set.Val())
		}
		delete(ready, route)
	}
	for route := range ready {
		s.wrongf("route %q is ready and no run waits there", route)
	}
}

// noNonce is what a claimed row without a claim has instead of a nonce; no version writes such rows, tests do.
var noNonce = strings.Repeat("-", 26)

// checkClaims wants a lease for every claim, and as many rows left as it holds.
func (s *shard) checkClaims() {
	leases := map[string]string{}
	maps.Copy(leases, s.hash("leases"))
	delete(s.held, noNonce)
	for _, z := range s.set("claims") {
		nonce, _ := z.Member.(string)
		rec, ok := leases[nonce]
		if !ok {
			s.wrongf("claim %s has no lease", nonce)
			continue
		}
		lines := strings.Split(rec, "\n")
		left, _ := strconv.ParseInt(leases[nonce+":n"], 10, 64)
		if len(lines) != 3 || left != s.held[nonce] && !s.closed[lines[1]] {
			s.wrongf("claim %s has %d rows left, %d records name it: %q", nonce, left, s.held[nonce], rec)
		}
		delete(leases, nonce)
		delete(leases, nonce+":n")
		delete(s.held, nonce)
	}
	for f := range leases {
		s.wrongf("leases has %s, which is no claim", f)
	}
	for nonce, n := range s.held {
		s.wrongf("%d records name the claim %s, which is none", n, nonce)
	}
}

// place is where a row may be.
type place byte

const (
	inSpan place = 1 << iota
	single
	parked // has the record of a pending row
	claimed
	resolved
)

// unescape is what a run's ID in a key stands for.
func unescape(id string) string { return strings.NewReplacer("%25", "%", "%3A", ":").Replace(id) }

// checkRun wants every row of a run in one place, and its counters right.
func (s *shard) checkRun(id string) {
	run := s.hash("run:" + id)
	num := func(field string) int64 { n, _ := strconv.ParseInt(run[field], 10, 64); return n }
	name := fmt.Sprintf("run %s of %q", id, run["wf"])
	if run["status"] == "staging" {
		return
	}
	s.checkLives(id, name)
	n, routes := num("n"), strings.Split(run["routes"], "\n")
	rows := make([]place, n)
	put := func(o int64, p place) {
		if o < 0 || o >= n || rows[o]&p != 0 {
			s.wrongf("%s: ordinal %d of %d is out of range or twice in one place (%b)", name, o, n, p)
			return
		}
		rows[o] |= p
	}
	var pending int64
	for r := range num("nroutes") {
		pending += num("p" + strconv.FormatInt(r, 10))
		s.backlog[routes[r]] += num("p" + strconv.FormatInt(r, 10))
		s.checkDue(id, name, r, routes[r], put)
	}
	for f, rec := range s.hash("rows:" + id) {
		o, err := strconv.ParseInt(f, 10, 64)
		switch {
		case err != nil || len(rec) < 31:
			s.wrongf("%s: row %q has the record %q", name, f, rec)
		case rec[0] == 'C':
			put(o, claimed)
			s.held[rec[5:31]]++
		case rec[0] == 'P':
			put(o, parked)
		default:
			s.wrongf("%s: row %q has the record %q", name, f, rec)
		}
	}
	for _, o := range s.bits("resolved:" + id) {
		put(o, resolved)
	}
	s.checkRows(name, run, rows, pending)
	counts := map[string]int64{
		"failed": int64(len(s.bits("failed:" + id))), "cancelled": int64(len(s.bits("cancelled:"+id)) + len(s.bits("rest:"+id))),
	}
	for field, want := range counts {
		if num(field) != want {
			s.wrongf("%s: %d are %s by the bitmaps, %d by the count", name, want, field, num(field))
		}
	}
	if run["status"] != "running" {
		s.closed[unescape(id)] = true
	}
	list := "runs:" + strings.NewReplacer("%", "%25", ":", "%3A").Replace(run["ns"])
	letter := map[string]string{"running": "r", "completed": "c", "failed": "f", "cancelled": "x"}[run["status"]]
	for _, l := range []string{"a", letter} {
		s.listed[list+" "+fmt.Sprintf("%s%015d", l, num("started"))+unescape(id)] = true
	}
}

// checkLists wants in the lists of runs what the runs are, and no more.
func (s *shard) checkLists() {
	for name, set := range s.sets {
		if !strings.HasPrefix(name, "runs:") {
			continue
		}
		for _, z := range set.Val() {
			m, _ := z.Member.(string)
			if !s.listed[name+" "+m] || z.Score != 0 {
				s.wrongf("%s has %q with the score %v, and no such run", name, m, z.Score)
			}
			delete(s.listed, name+" "+m)
		}
	}
	for place := range s.listed {
		s.wrongf("a run is not listed: %s", place)
	}
}

// checkRows wants each row in one place, and as many in each as the run's counters say.
func (s *shard) checkRows(name string, run map[string]string, rows []place, pending int64) {
	num := func(field string) int64 { n, _ := strconv.ParseInt(run[field], 10, 64); return n }
	var spans, holes, records, ended, waiting int64
	for o, p := range rows {
		switch p {
		case inSpan:
			spans++
			waiting++
		case inSpan | resolved:
			spans++
			holes++
			ended++
		case single | parked:
			records++
			waiting++
		case claimed:
			records++
		case resolved:
			ended++
		default:
			s.wrongf("%s: ordinal %d is in %05b (resolved, claimed, parked, single, span)", name, o, p)
		}
	}
	if num("holes") != holes {
		s.wrongf("%s: %d holes in spans, the run counts %d", name, holes, num("holes"))
	}
	if got := spans - num("holes") + records + ended; got != num("n") {
		s.wrongf("%s: %d in spans − %d holes + %d records + %d resolved = %d, want n = %d",
			name, spans, num("holes"), records, ended, got, num("n"))
	}
	if waiting != pending {
		s.wrongf("%s: %d rows are pending, its counters say %d", name, waiting, pending)
	}
	if got := num("completed") + num("failed") + num("cancelled"); got != ended {
		s.wrongf("%s: its counts make %d, %d are resolved", name, got, ended)
	}
	if run["status"] != "running" && (ended != num("n") || pending != 0 || records != 0 || spans != 0) {
		s.wrongf("%s is %s with %d of %s resolved, %d pending, %d in spans and %d records",
			name, run["status"], ended, run["n"], pending, spans, records)
	}
}

// checkDue wants members that make sense, and the run to wait where it has some.
func (s *shard) checkDue(id, name string, r int64, route string, put func(int64, place)) {
	members, plain := s.set("due:"+id+":"+strconv.FormatInt(r, 10)), unescape(id)
	for _, z := range members {
		m, _ := z.Member.(string)
		var a, b int64
		if n, _ := fmt.Sscanf(m, "%08df%08d", &a, &b); n == 2 && len(m) == 17 && b >= a {
			for o := a; o <= b; o++ {
				put(o, inSpan)
			}
		} else if n, _ := fmt.Sscanf(m, "%08d", &a); n == 1 && len(m) == 9 && m[8] == 'r' {
			put(a, single)
		} else {
			s.wrongf("%s: due set %d has the member %q", name, r, m)
		}
	}
	if len(members) == 0 {
		return
	}
	for _, z := range s.set("route:" + route) {
		if z.Member == any(plain) {
			return
		}
	}
	s.wrongf("%s has rows on route %q and does not wait there", name, route)
}

// checkLives wants no key of a run to expire.
func (s *shard) checkLives(id, name string) {
	for key, live := range s.lives {
		_, rest, _ := strings.Cut(key, ":")
		if (rest == id || strings.HasPrefix(rest, id+":")) && live.Val() != -1 && live.Val() != -time.Millisecond {
			s.wrongf("%s: %s expires in %v", name, key, live.Val())
		}
	}
}

func (s *shard) bits(name string) []int64 {
	var out []int64
	c := s.bitmaps[name]
	if c == nil {
		return nil
	}
	for i, b := range []byte(c.Val()) {
		for j := range 8 {
			if b>>(7-j)&1 == 1 {
				out = append(out, int64(i*8+j))
			}
		}
	}
	return out
}
