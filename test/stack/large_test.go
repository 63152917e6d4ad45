package stack

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel"
)

// size is n, or less where the tests are to be short.
func size(n, short int) int {
	if testing.Short() {
		return short
	}
	return n
}

// scripts returns how long each script took in Redis since it began to note that, the quickest first. That is time on
// the clock: on a busy machine the slowest say little.
func (s *stack) scripts() []time.Duration {
	s.t.Helper()
	log, err := s.redis.Client.SlowLogGet(s.t.Context(), -1).Result()
	if err != nil {
		s.t.Fatal(err)
	}
	var all []time.Duration
	for _, l := range log {
		if strings.HasPrefix(strings.ToLower(l.Args[0]), "eval") {
			all = append(all, l.Duration)
		}
	}
	if len(all) == 0 {
		s.t.Fatal("no script in Redis's slow log")
	}
	slices.Sort(all)
	return all
}

// watchSlow makes Redis note how long each call takes.
func (s *stack) watchSlow() {
	s.redis.Config(s.t, "slowlog-log-slower-than", "0")
	s.redis.Config(s.t, "slowlog-max-len", "100000")
	if err := s.redis.Client.Do(s.t.Context(), "SLOWLOG", "RESET").Err(); err != nil {
		s.t.Fatal(err)
	}
}

// Case 20: 20,000 rows are started in one fan-out, claimed, and all their leases lapse in the same instant.
func TestCase20LapseAtOnce(t *testing.T) {
	t.Parallel()
	n := size(20_000, 4000)
	onOwn(t, func(s *stack) {
		e := s.open(lease(umbel.MinLease))
		s.stage(e, "w", n)
		for claimed := 0; claimed < n; {
			claimed += len(s.claim(e, min(1000, n-claimed)))
		}
		_ = e.Close()                  // with it go the sweeps
		time.Sleep(2 * umbel.MinLease) // now everything is overdue
		e = s.open()                   // a gap: nothing lapses for one lease
		time.Sleep(umbel.MinLease / 2)
		s.eventually("all have lapsed", func() bool { return s.describe(e, "w").Counts.Pending == int64(n) })
		if n := s.log.count("WARN"); n > 0 {
			s.t.Errorf("%d warnings:\n%s", n, s.log.text())
		}
		s.cancel(e, "w")
		s.history(e, "w")
	})
}

// Case 62: one run has 200,000 retries that are due; ten rows of a new run are served at once.
func TestCase62RetriesDoNotStarve(t *testing.T) {
	t.Parallel()
	n := size(200_000, 5000)
	onOwn(t, func(s *stack) {
		e := s.open()
		s.stage(e, "w", n)
		for failed := 0; failed < n; {
			held := s.claim(e, min(1000, n-failed))
			failed += len(held)
			items := make([]umbel.ReportItem, len(held))
			for i, r := range held {
				items[i] = umbel.ReportItem{
					Token: r.Token, Outcome: umbel.OutcomeFailed, Failure: &umbel.Failure{Type: "x"}, RetryAfter: time.Millisecond,
				}
			}
			s.report(e, items...)
		}
		s.counts(e, "w", umbel.Counts{Scheduled: int64(n), Pending: int64(n)})
		s.start(e, "new", rows(10))
		got := 0
		for polls := 1; got < 10; polls++ {
			for _, r := range s.poll(e, 10) {
				if r.WorkflowID == "new" {
					got++
				}
			}
			if polls > 40 {
				s.t.Fatalf("after %d polls of ten rows the new run has %d of its ten", polls, got)
			}
		}
		began := time.Now()
		if c := s.cancel(e, "w"); c != int64(n) {
			s.t.Errorf("cancelled %d", c)
		}
		s.t.Logf("cancelled %d retries in %v", n, time.Since(began))
	})
}

// Case 62: 1,000 open runs: each is served in turn, whatever shard it is on.
func TestCase62RunsTakeTurns(t *testing.T) {
	t.Parallel()
	const n = 1000
	onReal(t, func(s *stack) {
		e := s.open()
		id := func(i int) umbel.WorkflowID { return umbel.WorkflowID("w" + strconv.Itoa(i)) }
		for i := range n {
			s.start(e, id(i), rows(200))
		}
		var served tally[umbel.WorkflowID]
		var fewest, most int
		for range 6 * n { // on average each run is served six times
			if held := s.poll(e, 10); len(held) > 0 {
				served.add(held[0].WorkflowID)
			}
		}
		fewest, most = n, 0
		for i := range n {
			fewest, most = min(fewest, served.get(id(i))), max(most, served.get(id(i)))
		}
		s.t.Logf("the runs were served %d to %d times", fewest, most)
		if fewest == 0 || most > 20 {
			s.t.Errorf("the runs were served %d to %d times, six on average", fewest, most)
		}
	})
}

// Case 63: a million rows delayed by 30 days are cancelled: the backlog is 0 at once and nothing waits.
func TestCase63CancelDelayed(t *testing.T) {
	t.Parallel()
	n := size(1_000_000, 50_000)
	onOwn(t, func(s *stack) {
		e := s.open()
		s.stage(e, "w", n, func(i int, r *umbel.StagedRow) { r.Delay = 30*24*time.Hour + time.Duration(i%7)*time.Millisecond })
		s.watchSlow()
		if c := s.cancel(e, "w"); c != int64(n) {
			s.t.Errorf("cancelled %d", c)
		}
		if all := s.scripts(); all[len(all)/2] > 10*time.Millisecond {
			s.t.Errorf("the cancel took %v in Redis", all)
		}
		if d := s.describe(e, "w"); d.Status != umbel.StatusCancelled || d.Counts.Cancelled != int64(n) {
			s.t.Errorf("%+v", d)
		}
		for _, kind := range []string{":due:", ":route:", ":ready", ":backlog"} {
			if left := s.keysOf(kind); len(left) > 0 {
				s.t.Errorf("left over: %q", left)
			}
		}
	})
}

// Case 64: 100,000 rows whose nodes alternate: the commit takes less than 10 ms in Redis, and so do the calls before.
func TestCase64AlternatingNodes(t *testing.T) {
	t.Parallel()
	n := size(100_000, 20_000)
	onOwn(t, func(s *stack) {
		e := s.open()
		commit := time.Hour
		for round := range 5 { // one that nothing else on the machine delays is enough
			wf, id := umbel.WorkflowID("w"+strconv.Itoa(round)), umbel.NewRunID()
			s.watchSlow()
			for at := 0; at < n; at += 5000 {
				if _, err := e.Stage(s.t.Context(), umbel.StageRequest{
					Namespace: ns, WorkflowID: wf, StagingID: id, Offset: int64(at),
					Rows: rows(5000, func(i int, r *umbel.StagedRow) { r.Node = []string{"a", "b"}[i%2] }),
				}); err != nil {
					s.t.Fatal(err)
				}
			}
			stage := s.scripts()
			s.watchSlow()
			if _, err := e.Commit(s.t.Context(), umbel.CommitRequest{Namespace: ns, WorkflowID: wf, StagingID: id, Scheduled: int64(n)}); err != nil {
				s.t.Fatal(err)
			}
			all := s.scripts()
			took := all[len(all)-1]
			s.t.Logf("staged in %v a call, committed in %v", stage[len(stage)/2], took)
			if median := stage[len(stage)/2]; median > 10*time.Millisecond {
				s.t.Errorf("a staging call took %v in Redis", median)
			}
			commit = min(commit, took)
			s.cancel(e, wf)
		}
		if commit > 10*time.Millisecond {
			s.t.Errorf("the commit took %v in Redis", commit)
		}
	})
}

// Case 67: inputs of 4 KB, claims of ten: what a claim costs Redis does not depend on where in the fan-out it is.
func TestCase67ClaimsCostTheSame(t *testing.T) {
	t.Parallel()
	n := size(200_000, 20_000)
	onOwn(t, func(s *stack) {
		e := s.open()
		input := umbel.Payload{Data: []byte(strings.Repeat("x", 4096))}
		id := umbel.NewRunID()
		const call = 200
		for at := 0; at < n; at += call {
			if _, err := e.Stage(s.t.Context(), umbel.StageRequest{
				Namespace: ns, WorkflowID: "w", StagingID: id, Offset: int64(at),
				Rows: rows(call, func(_ int, r *umbel.StagedRow) { r.Input = input }),
			}); err != nil {
				s.t.Fatal(err)
			}
		}
		if err := s.commitStaged(e, id, n); err != nil {
			s.t.Fatal(err)
		}
		var early, middle, late time.Duration
		const calls = 300
		early = s.claimCost(e, calls)
		s.finishUpTo(e, n/2)
		middle = s.claimCost(e, calls)
		s.finishUpTo(e, n-2*calls*10)
		late = s.claimCost(e, calls)
		s.t.Logf("a claim of ten took Redis %v, %v, %v", early, middle, late)
		if lo, hi := min(early, middle, late), max(early, middle, late); hi > 2*lo {
			s.t.Errorf("a claim of ten took Redis %v at the start, %v in the middle, %v at the end", early, middle, late)
		}
		s.cancel(e, "w")
	})
}

// claimCost claims ten rows so many times and returns what the script took in Redis.
func (s *stack) claimCost(e umbel.Engine, calls int) time.Duration {
	s.t.Helper()
	s.watchSlow()
	for range calls {
		s.claim(e, 10)
	}
	log, err := s.redis.Client.SlowLogGet(s.t.Context(), -1).Result()
	if err != nil {
		s.t.Fatal(err)
	}
	return cost(log)
}

// cost is the tenth percentile: on a busy machine most of the others have waited for a processor.
func cost(log []redis.SlowLog) time.Duration {
	var all []time.Duration
	for _, l := range log {
		if strings.EqualFold(l.Args[0], "evalsha") && len(l.Args) > 20 { // a claim has some 30 arguments, a mark few
			all = append(all, l.Duration)
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/10]
}

// finishUpTo completes rows of w until so many are resolved or claimed.
func (s *stack) finishUpTo(e umbel.Engine, n int) {
	s.t.Helper()
	for {
		c := s.describe(e, "w").Counts
		left := n - int(c.Resolved()+c.Claimed)
		if left <= 0 {
			return
		}
		s.finish(e, s.claim(e, min(left, 200)))
	}
}
