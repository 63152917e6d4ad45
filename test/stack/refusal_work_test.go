package stack

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel"
)

// workerRefusals are those of Poll, Renew and Report; good is a row that is held.
func workerRefusals(good umbel.ClaimedRow) []refusal {
	type ctx = context.Context
	poll := func(c ctx, e umbel.Engine, change func(*umbel.PollRequest)) error {
		r := pollRequest(1)
		change(&r)
		_, err := e.Poll(c, r)
		return err
	}
	report := func(c ctx, e umbel.Engine, change func(*umbel.ReportRequest)) error {
		r := umbel.ReportRequest{Namespace: ns, Worker: "hand", Items: []umbel.ReportItem{done(good)}}
		change(&r)
		_, err := e.Report(c, r)
		return err
	}
	table := slices.Concat(
		names("Poll", "namespace", false, func(c ctx, e umbel.Engine, v string) error {
			return poll(c, e, func(r *umbel.PollRequest) { r.Namespace = v })
		}),
		names("Poll", "task queue", false, func(c ctx, e umbel.Engine, v string) error {
			return poll(c, e, func(r *umbel.PollRequest) { r.TaskQueue = v })
		}),
		names("Poll", "node", true, func(c ctx, e umbel.Engine, v string) error {
			return poll(c, e, func(r *umbel.PollRequest) { r.Node = v })
		}),
		names("Poll", "worker", false, func(c ctx, e umbel.Engine, v string) error {
			return poll(c, e, func(r *umbel.PollRequest) { r.Worker = v })
		}),
		names("Poll", "activity type", false, func(c ctx, e umbel.Engine, v string) error {
			return poll(c, e, func(r *umbel.PollRequest) { r.Types = []string{task, v} })
		}),
		durations("Poll", "wait", func(c ctx, e umbel.Engine, v time.Duration) error {
			return poll(c, e, func(r *umbel.PollRequest) { r.Wait = v })
		}),
		names("Renew", "namespace", false, func(c ctx, e umbel.Engine, v string) error {
			_, err := e.Renew(c, umbel.RenewRequest{Namespace: v, Worker: "hand", Tokens: []umbel.Token{good.Token}})
			return err
		}),
		names("Renew", "worker", false, func(c ctx, e umbel.Engine, v string) error {
			_, err := e.Renew(c, umbel.RenewRequest{Namespace: ns, Worker: v, Tokens: []umbel.Token{good.Token}})
			return err
		}),
		names("Report", "namespace", false, func(c ctx, e umbel.Engine, v string) error {
			return report(c, e, func(r *umbel.ReportRequest) { r.Namespace = v })
		}),
		names("Report", "worker", false, func(c ctx, e umbel.Engine, v string) error {
			return report(c, e, func(r *umbel.ReportRequest) { r.Worker = v })
		}),
	)
	for _, n := range []int{0, -1, math.MinInt, math.MaxInt, umbel.MaxPollRows + 1} {
		table = append(table, refusal{"Poll", "rows", "rows", "must be from 1 to 1000", func(c ctx, e umbel.Engine) error {
			return poll(c, e, func(r *umbel.PollRequest) { r.MaxRows = n })
		}})
	}
	table = append(table,
		refusal{"Poll", "no types", "activity types", "at least one", func(c ctx, e umbel.Engine) error {
			return poll(c, e, func(r *umbel.PollRequest) { r.Types = nil })
		}},
		refusal{"Poll", "a wait of 50 s and a millisecond", "wait", "must be from 0s to 50s", func(c ctx, e umbel.Engine) error {
			return poll(c, e, func(r *umbel.PollRequest) { r.Wait = umbel.MaxPollWait + time.Millisecond })
		}},
		refusal{"Renew", "1,001 tokens", "renewal", "1000 tokens of a call", func(c ctx, e umbel.Engine) error {
			_, err := e.Renew(c, umbel.RenewRequest{Namespace: ns, Worker: "hand", Tokens: slices.Repeat([]umbel.Token{good.Token}, 1001)})
			return err
		}},
		refusal{"Report", "1,001 items", "report", "1000 items of a call", func(c ctx, e umbel.Engine) error {
			return report(c, e, func(r *umbel.ReportRequest) { r.Items = slices.Repeat(r.Items, 1001) })
		}},
		refusal{"Report", "4 MiB and a byte", "report", "4194304 bytes of a call", func(c ctx, e umbel.Engine) error {
			return report(c, e, func(r *umbel.ReportRequest) {
				r.Items = slices.Repeat(r.Items, 3)
				for i, n := range []int{umbel.MaxPayloadBytes, umbel.MaxPayloadBytes, 1} {
					r.Items[i].Result.Data = make([]byte, n)
				}
			})
		}},
	)
	return slices.Concat(table, itemRefusals(good), tokenRefusals(good))
}

// itemRefusals are those that an item of a report gets as its verdict.
func itemRefusals(good umbel.ClaimedRow) []refusal {
	type ctx = context.Context
	item := func(c ctx, e umbel.Engine, it umbel.ReportItem) error {
		r, err := e.Report(c, umbel.ReportRequest{Namespace: ns, Worker: "hand", Items: []umbel.ReportItem{it}})
		if err != nil || r.Verdicts[0].Code != umbel.Refused {
			return err
		}
		return r.Verdicts[0].Err
	}
	table := slices.Concat(
		durations("Report", "retry after", func(c ctx, e umbel.Engine, v time.Duration) error {
			it := failed(good)
			it.RetryAfter = v
			return item(c, e, it)
		}),
		names("Report", "result content type", true, func(c ctx, e umbel.Engine, v string) error {
			it := done(good)
			it.Result.ContentType = v
			return item(c, e, it)
		}),
	)
	for _, o := range []umbel.Outcome{0, -1, umbel.OutcomeReleased + 1, math.MaxInt} {
		table = append(table, refusal{"Report", "outcome", "outcome", "must be completed, failed or released", func(c ctx, e umbel.Engine) error {
			it := done(good)
			it.Outcome = o
			return item(c, e, it)
		}})
	}
	return append(table,
		refusal{"Report", "no failure", "failure", "must be set", func(c ctx, e umbel.Engine) error {
			it := failed(good)
			it.Failure = nil
			return item(c, e, it)
		}},
		refusal{"Report", "a result of 2 MiB and a byte", "result", "2097152 payload bytes", func(c ctx, e umbel.Engine) error {
			it := done(good)
			it.Result.Data = make([]byte, umbel.MaxPayloadBytes+1)
			return item(c, e, it)
		}},
	)
}

// tokenRefusals are those of tokens that no server has issued.
func tokenRefusals(good umbel.ClaimedRow) []refusal {
	part := strings.Split(string(good.Token), ".")
	with := func(i int, v string) umbel.Token {
		p := slices.Clone(part)
		p[i] = v
		return umbel.Token(strings.Join(p, "."))
	}
	var table []refusal
	for _, tok := range []umbel.Token{
		"", "x", ".......", good.Token[:20], "2" + good.Token[1:], "\x00\xff", umbel.Token(strings.Repeat("1.", 1000)),
		with(1, "zz"), with(1, "-1"), with(2, "a0000"), with(2, "-1"), with(3, "0"), with(3, "1t"), with(4, "1s"), with(4, "-1"),
		with(5, "zzzzzzzzzzzz"), with(5, "-1"), with(6, "short"), with(7, ""), with(7, strings.Repeat("r", 300)),
		with(2, "99999999999999999999999999"),
	} {
		table = append(table, refusal{"Report", "token " + string(tok), "token", "was not issued by this installation", func(c context.Context, e umbel.Engine) error {
			r, err := e.Report(c, umbel.ReportRequest{Namespace: ns, Worker: "hand", Items: []umbel.ReportItem{{Token: tok, Outcome: umbel.OutcomeReleased}}})
			if err != nil || r.Verdicts[0].Code != umbel.Refused {
				return err
			}
			return r.Verdicts[0].Err
		}}, refusal{"Renew", "token " + string(tok), "token", "", func(c context.Context, e umbel.Engine) error {
			r, err := e.Renew(c, umbel.RenewRequest{Namespace: ns, Worker: "hand", Tokens: []umbel.Token{tok}})
			if err != nil || r.States[0] != umbel.HoldInvalid {
				return err
			}
			return umbel.Invalid("token", string(tok), "is invalid by its state")
		}})
	}
	return append(table, refusal{"Report", "another namespace's token", "token", "for this namespace", func(c context.Context, e umbel.Engine) error {
		r, err := e.Report(c, umbel.ReportRequest{Namespace: "other", Worker: "hand", Items: []umbel.ReportItem{done(good)}})
		if err != nil || r.Verdicts[0].Code != umbel.Refused {
			return err
		}
		return r.Verdicts[0].Err
	}})
}

// readRefusals are those of Describe, Results, Cancel, History and List.
func readRefusals() []refusal {
	type ctx = context.Context
	wf := umbel.WorkflowID("w")
	var table []refusal
	for op, call := range map[string]func(c ctx, e umbel.Engine, namespace string, id umbel.WorkflowID, run umbel.RunID) error{
		"Describe": func(c ctx, e umbel.Engine, namespace string, id umbel.WorkflowID, run umbel.RunID) error {
			_, err := e.Describe(c, umbel.DescribeRequest{Namespace: namespace, WorkflowID: id, RunID: run})
			return err
		},
		"Results": func(c ctx, e umbel.Engine, namespace string, id umbel.WorkflowID, run umbel.RunID) error {
			_, err := e.Results(c, umbel.ResultsRequest{Namespace: namespace, WorkflowID: id, RunID: run})
			return err
		},
		"Cancel": func(c ctx, e umbel.Engine, namespace string, id umbel.WorkflowID, run umbel.RunID) error {
			_, err := e.Cancel(c, umbel.CancelRequest{Namespace: namespace, WorkflowID: id, RunID: run})
			return err
		},
		"History": func(c ctx, e umbel.Engine, namespace string, id umbel.WorkflowID, _ umbel.RunID) error {
			_, err := e.History(c, umbel.HistoryRequest{Namespace: namespace, WorkflowID: id})
			return err
		},
	} {
		table = append(table, names(op, "namespace", false, func(c ctx, e umbel.Engine, v string) error { return call(c, e, v, wf, "") })...)
		table = append(table, names(op, "workflow ID", false, func(c ctx, e umbel.Engine, v string) error { return call(c, e, ns, umbel.WorkflowID(v), "") })...)
		if op != "History" {
			table = append(table, names(op, "run ID", true, func(c ctx, e umbel.Engine, v string) error { return call(c, e, ns, wf, umbel.RunID(v)) })...)
		}
	}
	table = append(table, durations("Describe", "wait", func(c ctx, e umbel.Engine, v time.Duration) error {
		_, err := e.Describe(c, umbel.DescribeRequest{Namespace: ns, WorkflowID: wf, Wait: v})
		return err
	})...)
	table = append(table, durations("Results", "wait", func(c ctx, e umbel.Engine, v time.Duration) error {
		_, err := e.Results(c, umbel.ResultsRequest{Namespace: ns, WorkflowID: wf, Wait: v})
		return err
	})...)
	for _, n := range []int{-1, umbel.MaxPageItems + 1, math.MaxInt, math.MinInt} {
		table = append(table,
			refusal{"Results", "limit", "limit", "must be from 1 to 10000", func(c ctx, e umbel.Engine) error {
				_, err := e.Results(c, umbel.ResultsRequest{Namespace: ns, WorkflowID: wf, Limit: n})
				return err
			}},
			refusal{"History", "limit", "limit", "must be from 1 to 10000", func(c ctx, e umbel.Engine) error {
				_, err := e.History(c, umbel.HistoryRequest{Namespace: ns, WorkflowID: wf, Limit: n})
				return err
			}})
	}
	for _, from := range []int64{-1, math.MinInt64} {
		table = append(table, refusal{"History", "from", "from", "must be", func(c ctx, e umbel.Engine) error {
			_, err := e.History(c, umbel.HistoryRequest{Namespace: ns, WorkflowID: wf, From: from})
			return err
		}})
	}
	for _, cur := range []umbel.Cursor{"x", "\x00\xff", umbel.Cursor(strings.Repeat("a", 10_000)), "...."} {
		for _, ordered := range []bool{false, true} {
			table = append(table, refusal{"Results", "cursor " + string(cur), "cursor", "", func(c ctx, e umbel.Engine) error {
				_, err := e.Results(c, umbel.ResultsRequest{Namespace: ns, WorkflowID: wf, Cursor: cur, Ordered: ordered})
				return err
			}})
		}
	}
	table = append(table, listRefusals()...)
	cancel := func(c ctx, e umbel.Engine, r umbel.CancelRequest) error {
		r.Namespace, r.WorkflowID = ns, wf
		_, err := e.Cancel(c, r)
		return err
	}
	for _, o := range []int64{-1, 1 << 24, math.MinInt64, math.MaxInt64} {
		table = append(table, refusal{"Cancel", "ordinal", "ordinal", "must be from 0", func(c ctx, e umbel.Engine) error {
			return cancel(c, e, umbel.CancelRequest{Ordinals: []int64{1, o}})
		}})
	}
	return append(table,
		refusal{"Cancel", "1,001 ordinals", "cancel", "1000 ordinals of a call", func(c ctx, e umbel.Engine) error {
			return cancel(c, e, umbel.CancelRequest{Ordinals: make([]int64, 1001)})
		}},
		refusal{"Cancel", "a long reason", "reason", "4096 bytes", func(c ctx, e umbel.Engine) error {
			return cancel(c, e, umbel.CancelRequest{Reason: strings.Repeat("r", 4097)})
		}},
		refusal{"Cancel", "a reason that is no text", "reason", "valid UTF-8", func(c ctx, e umbel.Engine) error {
			return cancel(c, e, umbel.CancelRequest{Reason: "a\xff"})
		}},
	)
}
