package outboxtest

import (
	"bytes"
	"fmt"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/outbox"
)

func payloadCases() []testCase {
	return []testCase{
		{"Payloads_Promise14", payloads},
		{"PayloadsAlone_Promise14", payloadsAlone},
		{"PayloadOfTwoMebibytes_Promise14", largePayloads},
		{"PayloadsOfMixedSizes_Promise14", mixedPayloads},
		{"PayloadIsNotShared", payloadIsNotShared},
	}
}

// Payloads that something on the way may be tempted to parse, pad, trim or merge.
func oddPayloads() []umbel.Payload {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	var ps []umbel.Payload
	for _, data := range [][]byte{
		nil, []byte("\x00"), []byte("\x00\x00\x00\x00"), []byte("a\x00b"), []byte("\xff\xfe\xfd"), all,
		[]byte("[]"), []byte("{}"), []byte("null"), []byte(`""`), []byte("0"), []byte("9007199254740993"),
		[]byte("-9223372036854775808"), []byte("1e400"), []byte(" \t\r\n"), []byte("\r\n"), []byte("\xc3\x28"),
		[]byte("\xed\xa0\x80"), []byte("*3\r\n$3\r\nSET\r\n"), bytes.Repeat([]byte("x"), 16383),
		bytes.Repeat([]byte("\x80"), 16384), bytes.Repeat([]byte{0}, 16385), bytes.Repeat([]byte("y"), 70_000),
	} {
		for _, contentType := range []string{"", umbel.ContentTypeJSON, "x", "text/plain; charset=utf-8"} {
			ps = append(ps, umbel.Payload{ContentType: contentType, Data: data})
		}
	}
	return ps
}

func (s *suite) roundTrip(rows []outbox.Row) {
	s.Helper()
	want := map[string]umbel.Payload{}
	for _, r := range rows {
		want[nameOf(r)] = r.Input
	}
	see := func(how string, r outbox.Row) {
		if p := want[nameOf(r)]; !samePayload(r.Input, p) {
			s.Errorf("%s: %s went in as %q, %s and came back as %q, %s",
				how, nameOf(r), p.ContentType, short(p.Data), r.Input.ContentType, short(r.Input.Data))
		}
	}
	s.append(rows...)
	for _, r := range rows {
		see("get", s.get(r.Key()))
	}
	for range 2 { // a row is read in another way once it has been retried
		claimed := s.drain(50)
		s.wantSet("claims", claimed, rows)
		for _, r := range claimed {
			see("claim", r)
			s.ok(s.Store.Retry(s.Context(), r.Key(), 1, s.now().Add(-span)))
		}
	}
	for _, r := range rows {
		s.ok(s.Store.Complete(s.Context(), r.Key()))
	}
	for _, got := range s.scan("", rows[0].WorkflowID) {
		see("scan", got)
	}
}

func short(b []byte) string {
	if len(b) > 40 {
		return fmt.Sprintf("%q… (%d bytes)", b[:40], len(b))
	}
	return fmt.Sprintf("%q", b)
}

func payloads(s *suite) {
	var rows []outbox.Row
	for i, p := range oddPayloads() {
		r := row("w", int64(i))
		r.Input = p
		rows = append(rows, r)
	}
	s.roundTrip(rows)
}

// Each in a workflow of its own, where all the content types are equal.
func payloadsAlone(s *suite) {
	for i, p := range oddPayloads() {
		r := row(umbel.WorkflowID(fmt.Sprintf("w%d", i)), 0)
		r.Input = p
		s.append(r)
		got := s.claim(1)
		s.wantKeys("claim", got, []outbox.Row{r})
		if !samePayload(got[0].Input, p) {
			s.Errorf("%q, %s came back as %q, %s", p.ContentType, short(p.Data), got[0].Input.ContentType, short(got[0].Input.Data))
		}
		if got := s.get(r.Key()); !samePayload(got.Input, p) {
			s.Errorf("get: %q, %s came back as %q, %s", p.ContentType, short(p.Data), got.Input.ContentType, short(got.Input.Data))
		}
	}
}

// The largest payload that is allowed, next to small ones.
func largePayloads(s *suite) {
	rows := fanOut("w", 5)
	for _, i := range []int{1, 2, 4} {
		rows[i].Input.Data = bytes.Repeat([]byte{byte(i), 0, 0xff, '\n'}, umbel.MaxPayloadBytes/4)
	}
	s.roundTrip(rows)
}

// Sizes all over, in several calls, so that however inputs are packed the seams are met.
func mixedPayloads(s *suite) {
	var rows []outbox.Row
	for i := range 300 {
		r := row("w", int64(i))
		r.Input.Data = bytes.Repeat([]byte{byte(i)}, []int{0, 1, 100, 900, 7000, 20_000}[i*i%6])
		if i%50 > 40 {
			r.Input.ContentType = "other"
		}
		rows = append(rows, r)
	}
	s.append(rows[:3]...)
	s.append(rows[:77]...)
	s.append(rows[:150]...)
	s.roundTrip(rows)
}

// What a caller does to its bytes afterwards is its own business.
func payloadIsNotShared(s *suite) {
	r := row("w", 0)
	r.Input.Data = []byte("before")
	s.append(r)
	copy(r.Input.Data, "after!")
	got := s.get(r.Key())
	if string(got.Input.Data) != "before" {
		s.Fatalf("the stored input became %q", got.Input.Data)
	}
	copy(got.Input.Data, "after!")
	if got := s.claim(1); len(got) != 1 || string(got[0].Input.Data) != "before" {
		s.Errorf("claimed %+v", got)
	}
}
