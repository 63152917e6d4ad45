package outboxtest

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/outbox"
)

func raceCases() []testCase {
	return []testCase{
		{"ExclusiveClaim_Promise3", exclusive},
		{"ExclusiveScopedClaim_Promise3_Promise4", exclusiveScoped},
		{"ExclusiveUnderTransitions_Promise3", exclusiveUnderTransitions},
		{"AppendRace", appendRace},
		{"EndRace", endRace},
	}
}

const claimers = 8

// ledger notes who claimed what.
type ledger struct {
	sync.Mutex

	claims map[string]int
	total  atomic.Int64
}

func (l *ledger) add(rows []outbox.Row) {
	l.Lock()
	defer l.Unlock()
	if l.claims == nil {
		l.claims = map[string]int{}
	}
	for _, r := range rows {
		l.claims[nameOf(r)]++
	}
	l.total.Add(int64(len(rows)))
}

// race runs f on several goroutines until it says that it is done or the claims come to total. An empty claim
// in a race is no end: the rows may be in another's hands.
func (s *suite) race(l *ledger, total int, f func(who, round int) ([]outbox.Row, error)) {
	s.Helper()
	var wg sync.WaitGroup
	for who := range claimers {
		wg.Go(func() {
			for round := 0; l.total.Load() < int64(total) && round < 5000; round++ {
				rows, err := f(who, round)
				if err != nil {
					s.Errorf("claimer %d: %v", who, err)
					return
				}
				l.add(rows)
				if len(rows) == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	wg.Wait()
	if got := l.total.Load(); got != int64(total) {
		s.Errorf("%d claims of %d rows", got, total)
	}
	for name, n := range l.claims {
		if n != 1 {
			s.Errorf("%s was claimed %d times", name, n)
		}
	}
}

// A due row is in one claimer's hands.
func exclusive(s *suite) {
	const flows, n = 6, 150
	for i := range flows {
		s.append(fanOut(umbel.WorkflowID(fmt.Sprintf("w%d", i)), n)...)
	}
	var l ledger
	s.race(&l, flows*n, func(who, round int) ([]outbox.Row, error) {
		limit := (who*7+round)%23 + 1
		if who%2 == 0 {
			return s.Store.ClaimScoped(s.Context(), outbox.Scope{}, limit)
		}
		return s.Store.Claim(s.Context(), limit)
	})
	if len(l.claims) != flows*n {
		s.Errorf("%d of %d rows were claimed", len(l.claims), flows*n)
	}
}

func exclusiveScoped(s *suite) {
	const n = 600
	rows := fanOut("w", n)
	for i := range rows {
		rows[i].Node = []string{"", "a", "b"}[i%3]
		rows[i].TaskQueue = []string{"q", "p"}[i/7%2]
	}
	s.append(rows...)
	var l ledger
	s.race(&l, n, func(who, round int) ([]outbox.Row, error) {
		scope := outbox.Scope{TaskQueue: []string{"q", "p"}[who%2], Node: []string{"a", "b", "", "a"}[who/2%4]}
		got, err := s.Store.ClaimScoped(s.Context(), scope, round%11+1)
		for _, r := range got {
			if !scope.Admits(r) {
				s.Errorf("scope %+v was handed %+v", scope, r)
			}
		}
		return got, err
	})
}

// Claims race with completions, cancels, retries far into the future and each other. In the end every row is
// resolved or was put off, and no row was claimed after that.
func exclusiveUnderTransitions(s *suite) {
	const n = 400
	s.append(fanOut("w", n)...)
	future := s.now().Add(24 * time.Hour)
	var ended [n]atomic.Bool
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for who := range 4 {
		wg.Go(func() {
			for o := int64(who); o < n; o += 4 {
				k := key("w", o)
				var err error
				if o%5 == 4 {
					err = s.Store.Retry(s.Context(), k, 1, future)
				} else {
					err = ends()[o%3].do(s.Store, s.Context(), k)
				}
				if err != nil {
					s.Errorf("row %d: %v", o, err)
				}
				ended[o].Store(true)
			}
		})
	}
	var claimed sync.Map
	var claiming sync.WaitGroup
	for range 3 {
		claiming.Go(func() {
			for claimUnended(s, ended[:], &claimed) {
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	wg.Wait()
	close(stop)
	claiming.Wait()
	s.wantSet("claim when all is over", s.claim(10), nil)
	for _, r := range s.scan("", "w") {
		want := ends()[r.Ordinal%3].as
		if r.Ordinal%5 == 4 {
			want = outbox.Pending
		}
		if r.Status != want {
			s.Errorf("%s is %s, want %s", nameOf(r), r.Status, want)
		}
	}
}

// claimUnended claims a few rows: none that had ended before, none that is in claimed. False if it could not.
func claimUnended(s *suite, ended []atomic.Bool, claimed *sync.Map) bool {
	before := make([]bool, len(ended))
	for o := range ended {
		before[o] = ended[o].Load()
	}
	rows, err := s.Store.Claim(s.Context(), 5)
	if err != nil {
		s.Errorf("claim: %v", err)
		return false
	}
	for _, r := range rows {
		if before[r.Ordinal] {
			s.Errorf("%s was claimed after it was resolved or put off", nameOf(r))
		}
		if _, twice := claimed.LoadOrStore(r.Ordinal, true); twice {
			s.Errorf("%s was claimed twice", nameOf(r))
		}
	}
	return true
}

// Racing appends of the same rows add each once.
func appendRace(s *suite) {
	const n = 120
	var wg sync.WaitGroup
	for who := range claimers {
		wg.Go(func() {
			for size := 10; size <= n; size += 10 {
				rows := fanOut("w", size)
				for i := range rows {
					rows[i].Input.Data = fmt.Appendf(nil, "of %d", who)
				}
				if err := s.Store.Append(s.Context(), rows); err != nil {
					s.Errorf("append of %d rows: %v", size, err)
				}
			}
		})
	}
	wg.Wait()
	s.wantKeys("scan", s.scan("", "w"), fanOut("w", n))
	s.wantSet("claims", s.drain(50), fanOut("w", n))
}

// Of racing ends the first wins, and a reader never sees a second.
func endRace(s *suite) {
	const n = 40
	s.append(fanOut("w", n)...)
	s.claim(n / 2)
	for o := range int64(n) {
		var wg sync.WaitGroup
		seen := make([]outbox.Status, 6)
		for who := range seen {
			wg.Go(func() {
				if err := ends()[who%3].do(s.Store, s.Context(), key("w", o)); err != nil {
					s.Errorf("end: %v", err)
				}
				r, err := s.Store.Get(s.Context(), key("w", o))
				if err != nil {
					s.Errorf("get: %v", err)
				}
				seen[who] = r.Status
			})
		}
		wg.Wait()
		for _, status := range seen {
			if status != seen[0] || !status.Terminal() {
				s.Fatalf("row %d was seen as %v", o, seen)
			}
		}
	}
}
