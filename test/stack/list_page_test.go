package stack

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/outbox"
	"github.com/umbelhq/umbel/server"
)

// Runs of one millisecond, more than a page of them, on one shard and on many.
func TestListTies(t *testing.T) {
	for _, shards := range []int{1, 16, 256} {
		t.Run(strconv.Itoa(shards), func(t *testing.T) {
			onMini(t, func(s *stack) {
				e := s.open(func(c *server.Config) { c.Shards = shards })
				var want []umbel.RunID
				for i := range 50 { // time stands still
					want = append(want, s.start(e, umbel.WorkflowID("w"+strconv.Itoa(i)), nil))
				}
				slices.Sort(want)
				slices.Reverse(want)
				for _, limit := range []int{1, 2, 49, 50} {
					all, _ := s.list(e, umbel.ListRequest{Limit: limit})
					var got []umbel.RunID
					for _, r := range all {
						got = append(got, r.RunID)
					}
					if !slices.Equal(got, want) {
						s.t.Errorf("pages of %d: %q, want %q", limit, got, want)
					}
				}
			})
		})
	}
}

// Runs that are written from outside are listed as others are, also two of one ID and one millisecond.
func TestListOfRunsFromOutside(t *testing.T) {
	onMini(t, func(s *stack) {
		e := s.open()
		store, err := outbox.NewRedis(s.t.Context(), s.redis.Client, outbox.Options{Prefix: s.redis.Prefix})
		if err != nil {
			s.t.Fatal(err)
		}
		var appended []outbox.Row
		var names []umbel.WorkflowID
		shards := map[int]bool{}
		for i := range 8 { // one ID on one shard is one run
			id := umbel.WorkflowID("w" + strconv.Itoa(i))
			if shard := store.Shard(ns, id).Index; !shards[shard] {
				shards[shard] = true
				appended = append(appended, outbox.Row{WorkflowID: id, RunID: "1.2 ü:%", ActivityType: "t"})
				names = append(names, id)
			}
		}
		names = append(names, "implicit")
		appended = append(appended, outbox.Row{WorkflowID: "implicit", ActivityType: "t"})
		for range 2 {
			if err := store.Append(s.t.Context(), appended); err != nil {
				s.t.Fatal(err)
			}
		}
		slices.Sort(names)
		for _, limit := range []int{0, 1, 2, 3} {
			for _, status := range []umbel.Status{"", umbel.StatusRunning} {
				all, _ := s.list(e, umbel.ListRequest{Limit: limit, Status: status})
				if got := slices.Sorted(slices.Values(ids(all))); len(names) < 4 || !slices.Equal(got, names) {
					s.t.Errorf("pages of %d: %q, want %q", limit, got, names)
				}
			}
		}
		s.cancel(e, "implicit")
		s.listed(e, umbel.ListRequest{Status: umbel.StatusCancelled}, "implicit")
	})
}

// A cursor goes on in the list that it is of, on any server, and nowhere else.
func TestListCursors(t *testing.T) {
	onMini(t, func(s *stack) {
		a, b := s.open(), s.open()
		for i := range 4 {
			s.start(a, umbel.WorkflowID("w"+strconv.Itoa(i)), rows(1))
			s.later()
		}
		r := umbel.ListRequest{Namespace: ns, Status: umbel.StatusRunning, Type: task, Prefix: "w", Limit: 2}
		p, err := a.List(s.t.Context(), r)
		if err != nil || !slices.Equal(ids(p.Runs), []umbel.WorkflowID{"w3", "w2"}) {
			s.t.Fatalf("%+v, %v", p, err)
		}
		r.Cursor, r.Limit = p.Next, 1
		s.listed(b, r, "w1", "w0")
		refused := func(r umbel.ListRequest) {
			s.t.Helper()
			_, err := b.List(s.t.Context(), r)
			if e, ok := errors.AsType[*umbel.Error](err); !ok || e.Code != umbel.CodeInvalid || e.Field != "cursor" || e.Op != "list" {
				s.t.Errorf("%+v: %v", r, err)
			}
		}
		for _, change := range []func(r *umbel.ListRequest){
			func(r *umbel.ListRequest) { r.Namespace = "other" },
			func(r *umbel.ListRequest) { r.Status = "" },
			func(r *umbel.ListRequest) { r.Type = "" },
			func(r *umbel.ListRequest) { r.Prefix = "" },
		} {
			other := r
			change(&other)
			refused(other)
		}
		for i := range len(p.Next) {
			damaged := []byte(p.Next)
			damaged[i] ^= 1
			other := r
			other.Cursor = umbel.Cursor(damaged)
			refused(other)
		}
	})
}

// A run whose record was evicted is left out, and the pages go on behind it.
func TestListOfWhatIsGone(t *testing.T) {
	onMini(t, func(s *stack) {
		e := s.open(func(c *server.Config) { c.Shards = 1 })
		for i := range 5 {
			s.start(e, umbel.WorkflowID("w"+strconv.Itoa(i)), nil)
			s.later()
		}
		all, _ := s.list(e, umbel.ListRequest{})
		record := s.redis.Prefix + ":{491}:run:" + string(all[2].RunID)
		if s.redis.Client.Del(s.t.Context(), record).Val() != 1 {
			s.t.Fatal("the record is kept elsewhere now")
		}
		for _, limit := range []int{1, 2, 5} {
			s.listed(e, umbel.ListRequest{Limit: limit}, "w4", "w3", "w1", "w0")
		}
		s.redis.Engine(s.t).FlushAll()
	})
}

// A page ends before it is larger than MaxPageBytes: 90 runs of 64 routes with the longest names are more than that.
func TestListBytes(t *testing.T) {
	onMini(t, func(s *stack) {
		e := s.open()
		const n = 90
		long := func(prefix string, i int) string {
			return prefix + strconv.Itoa(i) + strings.Repeat("x", umbel.MaxNameBytes-4)
		}
		for i := range n {
			s.start(e, umbel.WorkflowID("w"+strconv.Itoa(i)), rows(umbel.MaxRoutes, func(o int, r *umbel.StagedRow) {
				r.Type, r.TaskQueue, r.Node = long("t", o), long("q", o), long("n", o)
			}))
		}
		all, pages := s.list(e, umbel.ListRequest{})
		if len(all) != n || pages != 2 || len(all[0].Types) != umbel.MaxRoutes {
			s.t.Errorf("%d runs on %d pages", len(all), pages)
		}
	})
}
