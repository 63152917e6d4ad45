package stack

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/outbox"
	"github.com/umbelhq/umbel/server"
)

// Every limit that the server enforces, at its value: accepted. One past it is in the tables of refusals.
func TestLimitsAreReached(t *testing.T) {
	for name, f := range map[string]func(s *stack, e umbel.Engine){
		"MaxStageRows": func(s *stack, e umbel.Engine) {
			s.start(e, "w", rows(umbel.MaxStageRows))
			s.counts(e, "w", umbel.Counts{Scheduled: umbel.MaxStageRows, Pending: umbel.MaxStageRows})
		},
		"MaxStageBytes": func(s *stack, e umbel.Engine) {
			s.start(e, "w", rows(2, func(_ int, r *umbel.StagedRow) { r.Input.Data = make([]byte, umbel.MaxStageBytes/2) }))
			s.finish(e, s.claim(e, 2))
		},
		"MaxPayloadBytes": func(s *stack, e umbel.Engine) {
			input := []byte(strings.Repeat("\x00\xff", umbel.MaxPayloadBytes/2))
			s.start(e, "w", rows(1, func(_ int, r *umbel.StagedRow) { r.Input.Data = input }))
			held := s.claim(e, 1)
			if string(held[0].Input.Data) != string(input) {
				s.t.Error("the input came back changed")
			}
			s.finish(e, held)
		},
		"MaxRoutes": func(s *stack, e umbel.Engine) {
			s.start(e, "w", rows(2*umbel.MaxRoutes, func(i int, r *umbel.StagedRow) { r.TaskQueue = "q" + strconv.Itoa(i%umbel.MaxRoutes) }))
			for i := range umbel.MaxRoutes {
				r := pollRequest(10)
				r.TaskQueue = "q" + strconv.Itoa(i)
				held := s.pollFor(e, r)
				if len(held) != 2 {
					s.t.Fatalf("route %d: %d rows", i, len(held))
				}
				s.finish(e, held)
			}
			if d := s.describe(e, "w"); d.Status != umbel.StatusCompleted {
				s.t.Errorf("%+v", d)
			}
		},
		"MaxRoutesOfPolicies": func(s *stack, e umbel.Engine) {
			types := make([]umbel.TypePolicy, umbel.MaxRoutes)
			for i := range types {
				types[i].Type = "t" + strconv.Itoa(i)
			}
			s.start(e, "w", rows(1), types...)
		},
		"MaxPollRowsAndMaxReportItems": func(s *stack, e umbel.Engine) {
			s.start(e, "w", rows(umbel.MaxPollRows))
			var held []umbel.ClaimedRow
			for len(held) < umbel.MaxPollRows {
				got := s.poll(e, umbel.MaxPollRows)
				if len(got) == 0 {
					s.t.Fatalf("an empty poll after %d rows", len(held))
				}
				held = append(held, got...)
			}
			tokens := make([]umbel.Token, len(held))
			for i, r := range held {
				tokens[i] = r.Token
			}
			if len(tokens) != umbel.MaxPollRows {
				s.t.Fatalf("%d rows", len(tokens))
			}
			r, err := e.Renew(s.t.Context(), umbel.RenewRequest{Namespace: ns, Worker: "hand", Tokens: tokens})
			if err != nil || slices.ContainsFunc(r.States, func(h umbel.HoldState) bool { return h != umbel.Held }) {
				s.t.Fatalf("%v: %v", err, r.States)
			}
			s.finish(e, held)
		},
		"MaxReportBytes": func(s *stack, e umbel.Engine) {
			s.start(e, "w", rows(2))
			held := s.claim(e, 2)
			items := []umbel.ReportItem{done(held[0]), done(held[1])}
			for i := range items {
				items[i].Result.Data = make([]byte, umbel.MaxReportBytes/2)
			}
			for _, v := range s.report(e, items...) {
				if v.Code != umbel.Recorded {
					s.t.Fatalf("%+v", v)
				}
			}
		},
		"MaxAttempts": func(s *stack, e umbel.Engine) {
			s.start(e, "w", rows(1), retry(umbel.RetryPolicy{Initial: time.Millisecond, Cap: time.Millisecond, MaxAttempts: umbel.MaxAttempts})...)
			for attempt := 1; ; attempt++ {
				held := s.claim(e, 1)
				if held[0].Attempt != attempt {
					s.t.Fatalf("attempt %d, want %d", held[0].Attempt, attempt)
				}
				if v := s.report(e, failed(held[0]))[0]; v.Code == umbel.Recorded {
					if attempt != umbel.MaxAttempts {
						s.t.Fatalf("ended at attempt %d", attempt)
					}
					break
				}
			}
			s.counts(e, "w", umbel.Counts{Scheduled: 1, Failed: 1})
			if n := failures(s.history(e, "w"), "test"); n != umbel.MaxAttempts {
				s.t.Errorf("%d failures in history", n)
			}
		},
		"MaxDelay": func(s *stack, e umbel.Engine) {
			s.start(e, "w", rows(2, func(i int, r *umbel.StagedRow) {
				if i == 0 {
					r.Delay = umbel.MaxDelay
				} else {
					r.NotBefore = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
				}
			}), umbel.TypePolicy{Type: task, StartToClose: umbel.MaxDelay, Retry: umbel.RetryPolicy{Initial: umbel.MaxDelay, Factor: 1000}})
			if got := s.poll(e, 2); len(got) != 0 {
				s.t.Fatalf("%d rows are due ten years early", len(got))
			}
			if n := s.cancel(e, "w"); n != 2 {
				s.t.Errorf("cancelled %d", n)
			}
		},
		"MaxNameBytes": func(s *stack, e umbel.Engine) {
			name := strings.Repeat("ü", 127) + "x"
			id := umbel.WorkflowID(name)
			if _, err := e.Commit(s.t.Context(), umbel.CommitRequest{
				Namespace: name, WorkflowID: id, Scheduled: 1,
				Rows: []umbel.StagedRow{{Type: name, TaskQueue: name, Node: name, Key: name, Input: umbel.Payload{ContentType: name, Data: []byte("x")}}},
			}); err != nil {
				s.t.Fatal(err)
			}
			held := s.pollFor(e, umbel.PollRequest{Namespace: name, TaskQueue: name, Node: name, Types: []string{name}, Worker: name, MaxRows: 1})
			if len(held) != 1 || held[0].WorkflowID != id || held[0].Node != name || held[0].Key != name || held[0].Input.ContentType != name {
				s.t.Fatalf("%+v", held)
			}
			r, err := e.Report(s.t.Context(), umbel.ReportRequest{Namespace: name, Worker: name, Items: []umbel.ReportItem{done(held[0])}})
			if err != nil || r.Verdicts[0].Code != umbel.Recorded {
				s.t.Fatalf("%v %+v", err, r)
			}
		},
		"MaxPageItems": func(s *stack, e umbel.Engine) {
			s.start(e, "w", rows(3))
			s.finish(e, s.claim(e, 3))
			for _, ordered := range []bool{false, true} {
				r, err := e.Results(s.t.Context(), umbel.ResultsRequest{Namespace: ns, WorkflowID: "w", Limit: umbel.MaxPageItems, Ordered: ordered})
				if err != nil || len(r.Results) != 3 {
					s.t.Fatalf("%v %+v", err, r)
				}
			}
			if r, err := e.History(s.t.Context(), umbel.HistoryRequest{Namespace: ns, WorkflowID: "w", Limit: umbel.MaxPageItems}); err != nil || len(r.Events) != int(r.Head) {
				s.t.Fatalf("%v %+v", err, r)
			}
		},
		"MaxListItems": func(s *stack, e umbel.Engine) {
			for i := range umbel.MaxListItems + 1 {
				s.start(e, umbel.WorkflowID("w"+strconv.Itoa(i)), nil)
			}
			for _, limit := range []int{umbel.MaxListItems, 0} {
				p, err := e.List(s.t.Context(), umbel.ListRequest{Namespace: ns, Limit: limit})
				if err != nil || len(p.Runs) != umbel.MaxListItems || p.Done {
					s.t.Fatalf("%d runs, done %t, %v", len(p.Runs), p.Done, err)
				}
			}
			all, pages := s.list(e, umbel.ListRequest{Prefix: "w500"})
			if len(all) != 1 || pages != 2 { // a page looks at 1,000 runs, however few it finds
				s.t.Errorf("%d runs on %d pages", len(all), pages)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			onMini(t, func(s *stack) { f(s, s.open()) })
		})
	}
}

// A run's rows are bounded when they are staged, before ten million of them are sent.
func TestMaxRows(t *testing.T) {
	onMini(t, func(s *stack) {
		e, id := s.open(), umbel.NewRunID()
		_, err := e.Commit(s.t.Context(), umbel.CommitRequest{Namespace: ns, WorkflowID: "w", StagingID: id, Scheduled: umbel.MaxRows})
		if !errors.Is(err, umbel.ErrStagingLost) { // within the limit, but nothing is staged
			s.t.Errorf("ten million: %v", err)
		}
		_, err = e.Commit(s.t.Context(), umbel.CommitRequest{Namespace: ns, WorkflowID: "w", StagingID: id, Scheduled: umbel.MaxRows + 1})
		if !errors.Is(err, umbel.ErrLimit) {
			s.t.Errorf("one more: %v", err)
		}
	})
}

// The lease's bounds, and what else a server's Config may not be. Nothing is founded by a server that is refused.
func TestConfigIsChecked(t *testing.T) {
	onMini(t, func(s *stack) {
		for name, change := range map[string]func(*server.Config){
			"lease":       lease(umbel.MinLease - time.Millisecond),
			"lease ":      lease(umbel.MaxLease + time.Millisecond),
			"lease  ":     lease(1500 * time.Microsecond),
			"lease   ":    lease(-time.Second),
			"lease    ":   lease(time.Second + time.Microsecond),
			"staging TTL": func(c *server.Config) { c.StagingTTL = time.Millisecond },
			"shards":      func(c *server.Config) { c.Shards = 3 },
			"shards ":     func(c *server.Config) { c.Shards = -1 },
			"shards  ":    func(c *server.Config) { c.Shards = 512 },
			"prefix":      func(c *server.Config) { c.Prefix = "a{b}" },
			"prefix ":     func(c *server.Config) { c.Prefix = "a\n" },
			"prefix  ":    func(c *server.Config) { c.Prefix = strings.Repeat("p", 256) },
		} {
			cfg := s.config
			change(&cfg)
			e, err := server.Open(s.t.Context(), s.redis.Client, cfg)
			got, ok := errors.AsType[*umbel.Error](err)
			if e != nil || !ok || got.Code != umbel.CodeInvalid || got.Field != strings.TrimSpace(name) {
				s.t.Errorf("%s: %v", name, err)
			}
			if text := s.dump(); text != "" {
				s.t.Fatalf("%s: something was written: %s", name, text)
			}
		}
		for _, d := range []time.Duration{umbel.MinLease, umbel.MaxLease} {
			if e := s.open(lease(d)); e.Lease() != d {
				s.t.Errorf("lease is %v, want %v", e.Lease(), d)
			}
		}
		cfg := s.config
		cfg.Shards = 32
		if _, err := server.Open(s.t.Context(), s.redis.Client, cfg); !errors.Is(err, umbel.ErrInvalid) {
			s.t.Errorf("another number of shards: %v", err)
		}
	})
}

// A server refuses an installation that a newer version founded.
func TestNewerFormatIsRefused(t *testing.T) {
	onMini(t, func(s *stack) {
		_ = s.open().Close()
		meta := s.redis.Prefix + ":{491}:meta"
		if s.redis.Client.HIncrBy(s.t.Context(), meta, "format", 1).Val() != outbox.Format+1 {
			s.t.Fatal("the format is kept elsewhere now")
		}
		_, err := server.Open(s.t.Context(), s.redis.Client, s.config)
		if got, ok := errors.AsType[*umbel.Error](err); !ok || got.Code != umbel.CodeUnsupported || !strings.Contains(got.Reason, "upgrade") {
			s.t.Errorf("%v", err)
		}
		s.redis.Client.HIncrBy(s.t.Context(), meta, "format", -1)
	})
}

// A server raises the format of an installation that an older version founded: that one opens it no more.
func TestOlderFormatIsRaised(t *testing.T) {
	onMini(t, func(s *stack) {
		_ = s.open().Close()
		meta := s.redis.Prefix + ":{491}:meta"
		s.redis.Client.HSet(s.t.Context(), meta, "format", outbox.Format-1)
		_ = s.open().Close()
		if got := s.redis.Client.HGet(s.t.Context(), meta, "format").Val(); got != strconv.Itoa(outbox.Format) {
			s.t.Errorf("the format is %s, want %d", got, outbox.Format)
		}
	})
}
