package historytest

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/history"
)

func payloadCases() []testCase {
	return []testCase{
		{"Payloads_Promise14", payloads},
		{"Case24_EmptyResultsApart", case24},
		{"LargePayloads_Promise14", largePayloads},
		{"Failures", failures},
	}
}

func oddPayloads() []umbel.Payload {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	var ps []umbel.Payload
	for _, data := range [][]byte{
		nil, []byte("\x00"), []byte("a\x00b"), []byte("\xff\xfe"), all, []byte("[]"), []byte("{}"), []byte("null"),
		[]byte(`""`), []byte("0"), []byte("9007199254740993"), []byte("-9223372036854775808"), []byte("\r\n"),
		[]byte("\xed\xa0\x80"), []byte("*1\r\n$4\r\nPING\r\n"), bytes.Repeat([]byte("\x80"), 20_000),
	} {
		for _, contentType := range []string{"", umbel.ContentTypeJSON, "x/y; z"} {
			ps = append(ps, umbel.Payload{ContentType: contentType, Data: data})
		}
	}
	return ps
}

// Inputs and results come back byte for byte, from the dispatch, from a completion and from an append.
func payloads(s *suite) {
	wf := flow()
	since := s.now()
	at := s.acquire(wf)
	ps := oddPayloads()
	its := items(len(ps))
	for i := range its {
		its[i].Input = ps[i]
	}
	s.dispatch(wf, &at, its...)
	want := dispatched(0, its...)
	for i, p := range ps {
		c := history.Completion{Ordinal: int64(i), Attempt: 1, Result: p}
		s.complete(wf, &at, c, history.Recorded)
		want = append(want, terminal(c))
	}
	for i, p := range ps {
		e := scheduled(int64(1000+i), history.Item{ActivityType: "act", Input: p})
		s.append(wf, &at, e)
		want = append(want, e)
	}
	s.wantEvents(wf, 1, since, want...)
}

// Results nil, "", null, [], {} and 0 can be told apart.
func case24(s *suite) {
	wf := flow()
	at := s.acquire(wf)
	results := []string{"", `""`, "null", "[]", "{}", "0", " ", "\n"}
	s.dispatch(wf, &at, items(len(results))...)
	for i, r := range results {
		s.complete(wf, &at, history.Completion{
			Ordinal: int64(i), Attempt: 1, Result: umbel.Payload{ContentType: umbel.ContentTypeJSON, Data: []byte(r)},
		}, history.Recorded)
	}
	for i, e := range s.all(wf)[2*len(results):] {
		if string(e.Result.Data) != results[i] || e.Result.ContentType != umbel.ContentTypeJSON {
			s.Errorf("%q came back as %q", results[i], e.Result.Data)
		}
	}
}

func largePayloads(s *suite) {
	wf := flow()
	at := s.acquire(wf)
	large := bytes.Repeat([]byte("\x00\xff\r\n"), umbel.MaxPayloadBytes/4)
	its := items(4)
	its[1].Input.Data, its[2].Input.Data = large, large
	s.dispatch(wf, &at, its...)
	for o := range int64(4) {
		c := success(o, 1)
		if o != 3 {
			c.Result.Data = large
		}
		s.complete(wf, &at, c, history.Recorded)
	}
	for _, e := range s.all(wf) {
		switch e.Type {
		case umbel.ActivityScheduled:
			if !bytes.Equal(e.Input.Data, its[e.Ordinal].Input.Data) {
				s.Errorf("input of %d has %d bytes, want %d", e.Ordinal, len(e.Input.Data), len(its[e.Ordinal].Input.Data))
			}
		case umbel.ActivityCompleted:
			want := large
			if e.Ordinal == 3 {
				want = success(3, 1).Result.Data
			}
			if !bytes.Equal(e.Result.Data, want) {
				s.Errorf("result of %d has %d bytes, want %d", e.Ordinal, len(e.Result.Data), len(want))
			}
		default: // has no payload
		}
	}
}

// A failure comes back with all there is to it.
func failures(s *suite) {
	wf := flow()
	since := s.now()
	at := s.acquire(wf)
	chain := &umbel.Failure{Type: "*net.OpError", Message: "the innermost"}
	for i := range umbel.MaxErrorCauses - 1 {
		chain = &umbel.Failure{Type: fmt.Sprintf("T%d", i), Message: fmt.Sprintf("layer %d", i), Cause: chain}
	}
	all := []*umbel.Failure{
		{},
		{Type: "Boom", Message: "it broke"},
		{Message: "no type, \x00, \r\n and \u2028", Attempt: 1},
		{Type: "\u65e5\u672c", Message: "🌿", NonRetryable: true, Attempt: 1},
		{Type: umbel.FailurePanic, Message: "panic: x", Stack: "goroutine 1 [running]:\n\tmain.go:1\n", Attempt: 1},
		{Type: "outer", Message: "outer: inner", Cause: &umbel.Failure{Type: "inner", Message: "inner", Attempt: 7, NonRetryable: true, Stack: "s"}},
		{Type: "deep", Message: "deep", Cause: chain, Attempt: 1},
		{
			Type: strings.Repeat("t", umbel.MaxNameBytes), Message: strings.Repeat("é", umbel.MaxErrorMessageBytes/2),
			Stack: strings.Repeat("s", umbel.MaxErrorStackBytes), Attempt: umbel.MaxAttempts,
		},
	}
	s.dispatch(wf, &at, items(len(all))...)
	want := dispatched(0, items(len(all))...)
	for i, f := range all {
		c := history.Completion{Ordinal: int64(i), Attempt: 1, Failure: f}
		s.complete(wf, &at, c, history.Recorded)
		want = append(want, terminal(c))
	}
	for i, f := range all {
		e := umbel.Event{Type: umbel.ActivityAttemptFailed, Row: umbel.Row{Ordinal: int64(i), Attempt: 1}, Failure: f, Worker: "w"}
		s.append(wf, &at, e)
		want = append(want, e)
	}
	s.wantEvents(wf, 1, since, want...)
}
