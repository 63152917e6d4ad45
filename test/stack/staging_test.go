package stack

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/outbox/outboxtest"
	"github.com/umbelhq/umbel/server"
)

// stageCall stages rows of workflow w and returns where the staging goes on.
func (s *stack) stageCall(e umbel.Engine, id umbel.StagingID, at, n int) (int64, error) {
	r, err := e.Stage(s.t.Context(), umbel.StageRequest{Namespace: ns, WorkflowID: "w", StagingID: id, Offset: int64(at), Rows: rows(n)})
	return r.Next, err
}

func (s *stack) commitStaged(e umbel.Engine, id umbel.StagingID, n int) error {
	_, err := e.Commit(s.t.Context(), umbel.CommitRequest{Namespace: ns, WorkflowID: "w", StagingID: id, Scheduled: int64(n)})
	return err
}

// keysOf returns the keys whose names hold a text.
func (s *stack) keysOf(text string) []string {
	s.t.Helper()
	names, err := outboxtest.Keyspace{Redis: s.redis.Client, Prefix: s.redis.Prefix}.Names(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	var out []string
	for _, n := range names {
		if strings.Contains(n, text) {
			out = append(out, n)
		}
	}
	return out
}

// Case 60: staging pauses for longer than its TTL: StagingLost, nothing is left and nothing became visible.
func TestCase60StagingExpires(t *testing.T) {
	onEach(t, func(s *stack) {
		e := s.open(func(c *server.Config) { c.StagingTTL = time.Second })
		id := umbel.NewRunID()
		if _, err := s.stageCall(e, id, 0, 3000); err != nil {
			s.t.Fatal(err)
		}
		for _, k := range s.keysOf(string(id)) {
			if ttl := s.redis.Client.PTTL(s.t.Context(), k).Val(); ttl <= 0 || ttl > time.Second {
				s.t.Errorf("TTL of %s is %v", k, ttl)
			}
		}
		time.Sleep(1500 * time.Millisecond)
		if _, err := s.stageCall(e, id, 3000, 10); !errors.Is(err, umbel.ErrStagingLost) {
			s.t.Errorf("stage: %v", err)
		}
		if err := s.commitStaged(e, id, 3000); !errors.Is(err, umbel.ErrStagingLost) {
			s.t.Errorf("commit: %v", err)
		}
		if left := s.keysOf(string(id)); len(left) > 0 {
			s.t.Errorf("left over: %q", left)
		}
		if _, err := e.Describe(s.t.Context(), umbel.DescribeRequest{Namespace: ns, WorkflowID: "w"}); !errors.Is(err, umbel.ErrNotFound) {
			s.t.Errorf("visible: %v", err)
		}
	})
}

// Case 60, promise 16: a chunk is sent twice, in and out of turn, and a gap is refused: N rows exactly; then no key of
// the open run has a TTL.
func TestCase60ChunksAgain(t *testing.T) {
	onEach(t, func(s *stack) {
		e, other := s.open(), s.open()
		id := umbel.NewRunID()
		for _, at := range []int{0, 2500, 0, 2500, 5000, 2500, 5000} {
			next, err := s.stageCall([]umbel.Engine{e, other}[at/2500%2], id, at, 2500)
			if err != nil || next < int64(at+2500) || next > 7500 {
				s.t.Fatalf("at %d: next %d, %v", at, next, err)
			}
		}
		if _, err := s.stageCall(e, id, 8000, 1); !errors.Is(err, umbel.ErrStagingLost) {
			s.t.Errorf("a gap: %v", err)
		}
		for _, n := range []int{7499, 7501} {
			if err := s.commitStaged(other, id, n); !errors.Is(err, umbel.ErrStagingLost) {
				s.t.Errorf("commit of %d: %v", n, err)
			}
		}
		if err := s.commitStaged(other, id, 7500); err != nil {
			s.t.Fatal(err)
		}
		held := s.claim(e, 100)
		s.verdict(e, released(held[0]), umbel.Released)
		s.verdict(e, failed(held[1]), umbel.Retrying)
		s.cancel(e, "w", held[2].Ordinal, 7000)
		s.counts(e, "w", umbel.Counts{Scheduled: 7500, Pending: 7401, Claimed: 97, Cancelled: 2})
		names := s.keysOf(string(id))
		if len(names) < 5 {
			s.t.Fatalf("keys of the run: %q", names)
		}
		for _, k := range names {
			if ttl := s.redis.Client.PTTL(s.t.Context(), k).Val(); ttl != -1 {
				s.t.Errorf("TTL of %s is %v", k, ttl)
			}
		}
		s.cancel(e, "w")
	})
}

// Case 60: the reply of every staging call and of the commit is lost: N rows exactly.
func TestCase60RepliesAreLost(t *testing.T) {
	onEach(t, func(s *stack) {
		var n atomic.Int64
		var on atomic.Bool
		f := &faults{lose: func(cmd redis.Cmder) bool { return on.Load() && isScript(cmd) && n.Add(1)%2 == 1 }}
		e := s.openOn(s.behind(f))
		on.Store(true)
		s.stage(e, "w", 20_000)
		on.Store(false)
		s.counts(e, "w", umbel.Counts{Scheduled: 20_000, Pending: 20_000})
		if f.lost.Load() < 5 {
			s.t.Errorf("%d replies were lost", f.lost.Load())
		}
	})
}

// Promise 1: a commit that fails leaves neither events nor rows, and a discard nothing at all.
func TestPromise1FailureLeavesNothing(t *testing.T) {
	onEach(t, func(s *stack) {
		e := s.open()
		s.start(e, "w", rows(1))
		before := s.dump()
		id := umbel.NewRunID()
		if _, err := s.stageCall(e, id, 0, 3000); err != nil {
			s.t.Fatal(err)
		}
		_, err := e.Commit(s.t.Context(), umbel.CommitRequest{
			Namespace: ns, WorkflowID: "w", StagingID: id, Scheduled: 3000, Digest: umbel.Digest{1},
		})
		if !errors.Is(err, umbel.ErrAlreadyExists) {
			s.t.Errorf("commit: %v", err)
		}
		if after := s.dump(); after != before {
			s.t.Errorf("a start that was refused left something:\n%s\n---\n%s", before, after)
		}
		id = umbel.NewRunID()
		if _, err := s.stageCall(e, id, 0, 3000); err != nil {
			s.t.Fatal(err)
		}
		for range 2 {
			if err := e.Discard(s.t.Context(), umbel.DiscardRequest{Namespace: ns, WorkflowID: "w", StagingID: id}); err != nil {
				s.t.Error(err)
			}
		}
		if after := s.dump(); after != before {
			s.t.Errorf("a discard left something:\n%s\n---\n%s", before, after)
		}
		held := s.claim(e, 1) // a discard of what is committed does nothing
		if err := e.Discard(s.t.Context(), umbel.DiscardRequest{Namespace: ns, WorkflowID: "w", StagingID: held[0].RunID}); err != nil {
			s.t.Error(err)
		}
		s.finish(e, held)
	})
}

// Case 40: a fan-out that passes a limit is refused when it is passed; what was staged is gone.
func TestCase40PastTheLimit(t *testing.T) {
	onEach(t, func(s *stack) {
		e, id := s.open(), umbel.NewRunID()
		route := func(i int, r *umbel.StagedRow) { r.TaskQueue = "q" + string(rune('a'+i/26)) + string(rune('a'+i%26)) }
		stage := func(at, n int) error {
			_, err := e.Stage(s.t.Context(), umbel.StageRequest{
				Namespace: ns, WorkflowID: "w", StagingID: id, Offset: int64(at), Rows: rows(at+n, route)[at:],
			})
			return err
		}
		if err := stage(0, umbel.MaxRoutes); err != nil {
			s.t.Fatal(err)
		}
		err := stage(umbel.MaxRoutes, 1)
		if got, ok := errors.AsType[*umbel.Error](err); !ok || got.Code != umbel.CodeLimit || !strings.Contains(got.Reason, "64 routes") {
			s.t.Errorf("%v", err)
		}
		if left := s.keysOf(string(id)); len(left) > 0 {
			s.t.Errorf("left over: %q", left)
		}
	})
}
