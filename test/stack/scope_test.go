package stack

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/worker"
)

var place = umbel.Define[string, string]("place")

// Promise 4, must show 4: rows pinned to a, to b and to none, workers on a, on b and on none: each row ran only where
// it may, and every worker had some.
func TestPromise4Scope(t *testing.T) {
	onEach(t, func(s *stack) {
		e := s.open()
		var ran tally[[2]string] // the row's node and the worker's
		for _, node := range []string{"a", "b", ""} {
			s.work(e, worker.Config{Node: node, Concurrency: 4}, func(w *worker.Worker) {
				worker.Handle(w, place, func(ctx context.Context, in string) (string, error) {
					ran.add([2]string{in, node})
					if got := worker.Info(ctx).Node; got != in {
						return "", umbel.NonRetryable(fmt.Errorf("node is %q, want %q", got, in))
					}
					time.Sleep(time.Millisecond)
					return node, nil
				})
			})
		}
		const n = 600
		items := client.Map(slices.Values(numbers(n)), func(i int) umbel.Item[string] {
			node := []string{"a", "b", ""}[i%3]
			return umbel.Item[string]{Node: node, Input: node}
		})
		run, err := client.FanOutItems(s.t.Context(), s.connect(e), place, items)
		if err != nil {
			s.t.Fatal(err)
		}
		if _, err := run.Gather(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
		for _, other := range [][2]string{{"a", "b"}, {"a", ""}, {"b", "a"}, {"b", ""}} {
			if x := ran.get(other); x != 0 {
				s.t.Errorf("%d rows of node %q ran on %q", x, other[0], other[1])
			}
		}
		if sum, _ := ran.sum(); sum != n || ran.get([2]string{"a", "a"}) != n/3 || ran.get([2]string{"b", "b"}) != n/3 {
			s.t.Errorf("%d of %d ran", sum, n)
		}
	})
}

// Promise 4: namespace, task queue, node and type match exactly. What differs in one of them is not handed out, burns
// no attempt and stays queued (case 48).
func TestPromise4ExactMatch(t *testing.T) {
	onEach(t, func(s *stack) {
		e := s.open()
		s.start(e, "w", rows(1, func(_ int, r *umbel.StagedRow) { r.Node = "a" }))
		base := pollRequest(1)
		base.Node = "a"
		for name, change := range map[string]func(*umbel.PollRequest){
			"namespace":  func(r *umbel.PollRequest) { r.Namespace = "Default" },
			"task queue": func(r *umbel.PollRequest) { r.TaskQueue = "default:" },
			"node":       func(r *umbel.PollRequest) { r.Node = "A" },
			"no node":    func(r *umbel.PollRequest) { r.Node = "" },
			"type":       func(r *umbel.PollRequest) { r.Types = []string{"task ", "tas", "", "*"}[:2] },
		} {
			r := base
			change(&r)
			if got := s.pollFor(e, r); len(got) != 0 {
				s.t.Errorf("%s: handed out all the same", name)
			}
		}
		s.counts(e, "w", umbel.Counts{Scheduled: 1, Pending: 1})
		held := s.pollFor(e, base)
		if len(held) != 1 || held[0].Attempt != 1 {
			s.t.Fatalf("%+v", held)
		}
		s.finish(e, held)
	})
}

// Promise 17, case 17: names that look like syntax, on three masters too: start, claim, report, cancel.
func TestCase17AnyName(t *testing.T) {
	odd := []string{"a}b{", "{x}", "{}", "{}:*", "a:b", "a%3Ab", "*", " ", "ü🌱", "..", "\u2028", "wf:default:w"}
	onEach(t, func(s *stack) {
		e, ctx := s.open(), s.t.Context()
		for i, name := range odd {
			queue, node, id := odd[(i+1)%len(odd)], odd[(i+2)%len(odd)], umbel.WorkflowID(odd[(i+3)%len(odd)])
			request := rows(3, func(_ int, r *umbel.StagedRow) { r.Type, r.TaskQueue, r.Node, r.Key = name, queue, node, name })
			if _, err := e.Commit(ctx, umbel.CommitRequest{Namespace: name, WorkflowID: id, Rows: request, Scheduled: 3}); err != nil {
				s.t.Fatalf("%q: %v", name, err)
			}
			r := umbel.PollRequest{Namespace: name, TaskQueue: queue, Node: node, Types: []string{name}, Worker: name, MaxRows: 2, Wait: 5 * time.Second}
			held := s.pollFor(e, r)
			if len(held) != 2 || held[0].WorkflowID != id || held[0].Key != name || held[0].TaskQueue != queue || held[0].Node != node {
				s.t.Fatalf("%q: %+v", name, held)
			}
			v, err := e.Report(ctx, umbel.ReportRequest{Namespace: name, Worker: name, Items: []umbel.ReportItem{done(held[0])}})
			if err != nil || v.Verdicts[0].Code != umbel.Recorded {
				s.t.Fatalf("%q: %v %+v", name, err, v)
			}
			c, err := e.Cancel(ctx, umbel.CancelRequest{Namespace: name, WorkflowID: id})
			if err != nil || c.Cancelled != 2 {
				s.t.Fatalf("%q: %v %+v", name, err, c)
			}
			d, err := e.Describe(ctx, umbel.DescribeRequest{Namespace: name, WorkflowID: id})
			if err != nil || d.Counts != (umbel.Counts{Scheduled: 3, Completed: 1, Cancelled: 2}) {
				s.t.Fatalf("%q: %v %+v", name, err, d)
			}
		}
	})
}

// Case 50: a workflow ID is bytes, not a number.
func TestCase50LeadingZeros(t *testing.T) {
	onMini(t, func(s *stack) {
		e := s.open()
		ids := []umbel.WorkflowID{"00123", "123", "0123", "1e3", "1000", "0x7b"}
		for i, id := range ids {
			s.start(e, id, rows(i+1))
		}
		for i, id := range ids {
			if d := s.describe(e, id); d.WorkflowID != id || d.Counts.Scheduled != int64(i+1) {
				s.t.Errorf("%s: %+v", id, d)
			}
		}
		for _, r := range s.claim(e, 21) {
			if !slices.Contains(ids, r.WorkflowID) || r.DispatchKey() != string(r.WorkflowID)+":"+strconv.FormatInt(r.Ordinal, 10) {
				s.t.Errorf("%+v", r)
			}
		}
	})
}

// Case 23: rows of the same millisecond come in order of ordinal, 9 before 10.
func TestCase23OrderOfOrdinals(t *testing.T) {
	onEach(t, func(s *stack) {
		e := s.open()
		at := time.Now().Add(-time.Minute)
		s.start(e, "w", rows(1000, func(i int, r *umbel.StagedRow) {
			r.NotBefore = at
			r.Key = strconv.Itoa(i % 2) // keys do not matter
		}))
		next := int64(0)
		for next < 1000 {
			for _, r := range s.claim(e, 7+int(next)%3) {
				if r.Ordinal != next {
					s.t.Fatalf("ordinal %d, want %d", r.Ordinal, next)
				}
				next++
			}
			if next > 990 {
				break
			}
		}
	})
}

// Case 24, promise 14: results that look alike stay apart, in bytes and in content type.
func TestCase24ResultsStayApart(t *testing.T) {
	payloads := []umbel.Payload{
		{}, {Data: []byte(`""`)}, {Data: []byte("null")}, {Data: []byte("[]")}, {Data: []byte("{}")}, {Data: []byte("0")},
		{ContentType: "x"}, {Data: []byte("\x00")}, {Data: []byte("\xff\xfe\x00\r\n")}, {Data: []byte("9007199254740993")},
		{ContentType: "application/json", Data: []byte("-0.0")}, {Data: []byte("%s %d {} [] $1")},
	}
	onEach(t, func(s *stack) {
		e := s.open()
		s.start(e, "w", rows(len(payloads), func(i int, r *umbel.StagedRow) { r.Input = payloads[i] }))
		for _, r := range s.claim(e, len(payloads)) {
			if !same(r.Input, payloads[r.Ordinal]) {
				s.t.Errorf("input %d is %q, want %q", r.Ordinal, r.Input, payloads[r.Ordinal])
			}
			s.verdict(e, done(r), umbel.Recorded)
		}
		for _, ordered := range []bool{true, false} {
			r, err := e.Results(s.t.Context(), umbel.ResultsRequest{Namespace: ns, WorkflowID: "w", Ordered: ordered, WithInputs: true})
			if err != nil || len(r.Results) != len(payloads) {
				s.t.Fatalf("%v, %d results", err, len(r.Results))
			}
			for _, res := range r.Results {
				if !same(res.Value, payloads[res.Ordinal]) || !same(res.Input, payloads[res.Ordinal]) {
					s.t.Errorf("result %d is %q of %q, want %q", res.Ordinal, res.Value, res.Input, payloads[res.Ordinal])
				}
			}
		}
	})
}

func same(a, b umbel.Payload) bool {
	return a.ContentType == b.ContentType && string(a.Data) == string(b.Data)
}
