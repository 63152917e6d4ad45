package history

import (
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel"
)

var update = flag.Bool("update", false, "write what is missing in testdata; what is there stays: it must decode for ever")

// golden is an entry of a history as a version wrote it, and what it must be read as for ever.
type golden struct {
	name   string
	events []umbel.Event
	bytes  func(t *testing.T) []byte // nil: of the events
}

var (
	goldenAt      = time.UnixMilli(1_796_000_000_123).UTC()
	goldenClaimed = time.UnixMilli(1_795_999_999_000).UTC()
)

func goldens() []golden {
	row := func(ordinal int64, attempt int) umbel.Row { return umbel.Row{Ordinal: ordinal, Attempt: attempt} }
	boom := &umbel.Failure{
		Type: "Boom", Message: "it \x00 broke 🌿", Stack: "goroutine 1", Attempt: 3, NonRetryable: true,
		Cause: &umbel.Failure{Type: "io", Message: "éof", Cause: &umbel.Failure{Message: "deep"}},
	}
	all := []golden{
		{"started", []umbel.Event{{Type: umbel.WorkflowStarted, RunID: "run:1 a", Scheduled: 10_000_000}}, nil},
		{"scheduled", []umbel.Event{{
			Type: umbel.ActivityScheduled, TaskQueue: "q", Node: "n",
			Row: umbel.Row{Ordinal: 1<<24 - 1, Type: "act", Key: "label", Input: umbel.Payload{ContentType: "x/y", Data: []byte("a\x00\xff")}},
		}}, nil},
		{"activity-started", []umbel.Event{{Type: umbel.ActivityStarted, Row: row(300, 64)}}, nil},
		{"attempt-failed", []umbel.Event{{
			Type: umbel.ActivityAttemptFailed, Row: row(5, 3), Failure: boom, NextVisible: goldenAt.Add(time.Hour),
		}}, nil},
		{"attempt-failed-without-next", []umbel.Event{{Type: umbel.ActivityAttemptFailed, Row: row(5, 1), Failure: &umbel.Failure{}}}, nil},
		{"failed", []umbel.Event{{Type: umbel.ActivityFailed, Row: row(0, 3), Failure: boom}}, nil},
		{"cancelled", []umbel.Event{{Type: umbel.ActivityCancelled, Row: row(128, 0)}}, nil},
		{"cancel-requested", []umbel.Event{{Type: umbel.CancelRequested, Reason: "no longer wanted"}}, nil},
		{"decided", []umbel.Event{{Type: umbel.FanOutDecided, Status: umbel.StatusFailed}}, nil},
		{"closed", []umbel.Event{{Type: umbel.WorkflowClosed, Status: umbel.StatusCancelled}}, nil},
		{"retried", []umbel.Event{
			{
				Type: umbel.ActivityAttemptFailed, Row: row(7, 1), Failure: withoutStacks(boom), NextVisible: goldenAt.Add(1500 * time.Millisecond),
				Worker: "worker-1", ClaimedAt: goldenClaimed,
			},
			{Type: umbel.ActivityStarted, Row: row(7, 2)},
		}, func(t *testing.T) []byte {
			t.Helper()
			s := Settled{Ending: Retried, Ordinal: 7, Attempt: 1, Failure: boom, Wait: 1500 * time.Millisecond}
			it, err := s.item()
			if err != nil {
				t.Fatal(err)
			}
			return append(encodePreamble("worker-1", goldenClaimed), it.Event...)
		}},
		{"reported", []umbel.Event{
			{Type: umbel.ActivityCompleted, Row: row(1, 1), Result: umbel.Payload{Data: []byte("1")}, Worker: "worker-1", ClaimedAt: goldenClaimed},
			{Type: umbel.ActivityCompleted, Row: row(2, 1), Result: umbel.Payload{Data: []byte("2")}, Worker: "worker-1", ClaimedAt: goldenClaimed},
			{Type: umbel.ActivityFailed, Row: row(3, 2), Failure: &umbel.Failure{Message: "m"}, Worker: "worker-2"},
			{Type: umbel.FanOutDecided, Status: umbel.StatusFailed},
			{Type: umbel.WorkflowClosed, Status: umbel.StatusFailed},
		}, nil},
	}
	for i, contentType := range []string{
		"", umbel.ContentTypeJSON, "text/plain", "application/octet-stream", "application/x-protobuf", "image/png; q=🌿",
	} {
		all = append(all, golden{fmt.Sprintf("completed-%d", i), []umbel.Event{{
			Type: umbel.ActivityCompleted, Row: row(int64(i), i+1), Result: umbel.Payload{ContentType: contentType, Data: []byte("\x00\xffdata")},
		}}, nil})
	}
	return all
}

// encode is what is written of the events of g.
func (g golden) encode(t *testing.T) []byte {
	t.Helper()
	if g.bytes != nil {
		return g.bytes(t)
	}
	var b []byte
	var who actor
	for _, e := range g.events {
		if now := (actor{e.Worker, e.ClaimedAt}); now != who && (e.Type == umbel.ActivityFailed || e.Type == umbel.ActivityCompleted) {
			b, who = append(b, encodePreamble(e.Worker, e.ClaimedAt)...), now
		}
		var err error
		if b, err = encodeEvent(b, e); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// What was written once decodes for ever, and to the same; and it is what this version writes.
func TestGoldenEncoding(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("testdata", "v1")
	left := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(dir, "*.hex"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		left[f] = true
	}
	for _, g := range goldens() {
		file := filepath.Join(dir, g.name+".hex")
		delete(left, file)
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) && *update {
			text = []byte(hex.EncodeToString(g.encode(t)) + "\n")
			err = os.WriteFile(file, text, 0o600)
		}
		if err != nil {
			t.Errorf("%s: %v; -update writes what is missing", g.name, err)
			continue
		}
		b, err := hex.DecodeString(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		if now := g.encode(t); string(now) != string(b) {
			t.Errorf("%s is written as %x, was %x", g.name, now, b)
		}
		e := entry{first: 41, count: int64(len(g.events)), kind: "e", value: string(b), at: goldenAt}
		want := make([]umbel.Event, len(g.events))
		for i, ev := range g.events {
			ev.Seq, ev.At = 41+int64(i), goldenAt
			want[i] = ev
		}
		var got []umbel.Event
		for ev, err := range e.decode(e.first) {
			if err != nil {
				t.Errorf("%s: %v", g.name, err)
			}
			got = append(got, ev)
		}
		if d := gocmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", g.name, d)
		}
	}
	for f := range left {
		t.Errorf("%s belongs to no event of this test: what was written must decode for ever", f)
	}
}

// Every kind, and every content type that has a number, has its golden bytes.
func TestGoldensAreAll(t *testing.T) {
	t.Parallel()
	seen := map[umbel.EventType]bool{}
	for _, g := range goldens() {
		for _, e := range g.events {
			seen[e.Type] = true
		}
	}
	if len(seen) != int(kindClosed)-1 { // the preamble is no event
		t.Errorf("%d event types of %d", len(seen), kindClosed-1)
	}
}
