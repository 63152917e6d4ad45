package enginetest

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/umbelhq/umbel"
)

// poll: a row arrives with every field, once; another attempt knows how the last one failed.
func poll(s *suite) {
	run := s.start("w", rows(0, 3), umbel.TypePolicy{Type: task, Retry: soon().Retry, StartToClose: 1500 * time.Millisecond})
	held := s.claim(2)
	for i, r := range held {
		if r.Token == "" || r.Lease != umbel.DefaultLease {
			s.Errorf("token %q, lease %v", r.Token, r.Lease)
		}
		s.equal("row", r, umbel.ClaimedRow{
			Row:        umbel.Row{Ordinal: int64(i), Key: rows(i, 1)[0].Key, Type: task, Attempt: 1, Input: rows(i, 1)[0].Input},
			WorkflowID: "w", RunID: run, Namespace: ns, TaskQueue: pool, Token: r.Token, Lease: r.Lease, StartToClose: 1500 * time.Millisecond,
		})
	}
	if held[0].Token == held[1].Token {
		s.Error("two rows with one token")
	}
	s.finish(s.claim(1)...)
	none := pollRequest(5)
	none.Wait = 0
	r, err := s.e.Poll(s.Context(), none)
	s.ok(err)
	if len(r.Rows) > 0 {
		s.Errorf("claimed twice: %+v", r.Rows)
	}
	f := failure("first")
	f.NonRetryable = false
	s.report([]umbel.ReportItem{failed(held[1], f)}, umbel.Retrying)
	again := s.claim(1)[0]
	if again.Attempt != 2 || again.Ordinal != 1 || again.LastFailure == nil {
		s.Fatalf("%+v", again)
	}
	want := *f
	want.Attempt = 1
	want.Stack = again.LastFailure.Stack // kept of the last attempt only
	s.equal("last failure", again.LastFailure, &want)
}

// pollWaits: a poll that waits gets what becomes due, and an empty reply if nothing does.
func pollWaits(s *suite) {
	r := pollRequest(1)
	r.Wait = 100 * time.Millisecond
	got, err := s.e.Poll(s.Context(), r)
	s.ok(err)
	if len(got.Rows) > 0 {
		s.Errorf("of nothing: %+v", got)
	}
	rows := rows(0, 1)
	rows[0].Delay = 300 * time.Millisecond
	s.start("w", rows)
	s.finish(s.claim(1)...)
}

// payloads are bytes that something in between might change.
func payloads() []umbel.Payload {
	return []umbel.Payload{
		{},
		{ContentType: "application/json", Data: []byte("{}")},
		{ContentType: "only a type"},
		{Data: []byte("null")},
		{Data: []byte{0}},
		{Data: []byte("\xff\xfe\x00invalid UTF-8\xed\xa0\x80")},
		{ContentType: strings.Repeat("c", umbel.MaxNameBytes), Data: []byte("[]")},
		{ContentType: "application/octet-stream", Data: bytes.Repeat([]byte("\x00\xff\r\n"), umbel.MaxPayloadBytes/4)},
	}
}

// pollPayloads: bytes in, bytes out; 2 MiB travel alone.
func pollPayloads(s *suite) {
	in := payloads()
	for i, p := range in {
		s.start(umbel.WorkflowID('a'+rune(i)), []umbel.StagedRow{{Type: task, TaskQueue: pool, Input: p}})
		r := s.claim(1)[0]
		s.equal("input", r.Input, p)
		s.finish(r)
	}
}

// pollEnds: a poll whose context ends says so, and holds no row afterwards.
func pollEnds(s *suite) {
	ctx, stop := context.WithCancelCause(s.Context())
	why := errors.New("enough")
	ended := make(chan error, 1)
	go func() {
		r := pollRequest(1)
		r.Wait = umbel.MaxPollWait
		_, err := s.e.Poll(ctx, r)
		ended <- err
	}()
	time.AfterFunc(50*time.Millisecond, func() { stop(why) })
	if err := <-ended; !errors.Is(err, umbel.ErrUnavailable) || !errors.Is(err, why) {
		s.Errorf("the poll ended with %v", err)
	}
	s.start("w", rows(0, 1))
	s.finish(s.claim(1)...)
}
