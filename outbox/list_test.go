package outbox

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel"
)

// Whatever a client sends as a cursor: it is refused, or the very text that this list's own place is written as.
func FuzzListCursor(f *testing.F) {
	l := List{Namespace: "n", Status: umbel.StatusFailed}
	for _, at := range []place{{}, {1, "run", 0}, {999_999_999_999_999, "1.2.ü .", 255}} {
		f.Add(string(l.cursor(at)))
	}
	f.Add("1.1.1..00000000")
	f.Fuzz(func(t *testing.T, s string) {
		at, err := l.parse(umbel.Cursor(s))
		if err == nil && s != "" && (l.cursor(at) != umbel.Cursor(s) || at.run == "" || at.shard < 0 || at.started < 0) {
			t.Fatalf("%q is read as %+v", s, at)
		}
		if _, err := (List{Namespace: "n"}).parse(umbel.Cursor(s)); err == nil && s != "" && at != (place{}) {
			t.Fatalf("%q is a cursor of two lists", s)
		}
	})
}

// Cursors are kept by clients, so that what they are written as is for ever.
func TestListCursor(t *testing.T) {
	t.Parallel()
	l := List{Namespace: "n", Status: umbel.StatusFailed, Type: "t", Prefix: "p"}
	at := place{1_796_000_000_123, "run.1", 7}
	c := l.cursor(at)
	if want := umbel.Cursor("1.1796000000123.7.run.1.9816edd8"); c != want {
		t.Errorf("%q, want %q", c, want)
	}
	if got, err := l.parse(c); err != nil || got != at {
		t.Errorf("read as %+v, %v", got, err)
	}
}

// Where a list goes on behind a place, on its own shard, on those before and on those after.
func TestListRange(t *testing.T) {
	t.Parallel()
	at := place{42, "run", 3}
	for _, c := range []struct {
		status umbel.Status
		at     place
		shard  int
		want   redis.ZRangeBy
	}{
		{"", place{}, 3, redis.ZRangeBy{Min: "[a", Max: "(b"}},
		{umbel.StatusCancelled, place{}, 3, redis.ZRangeBy{Min: "[x", Max: "(y"}},
		{umbel.StatusRunning, at, 2, redis.ZRangeBy{Min: "[r", Max: "(r000000000000042run"}},
		{umbel.StatusCompleted, at, 3, redis.ZRangeBy{Min: "[c", Max: "(c000000000000042run"}},
		{umbel.StatusFailed, at, 4, redis.ZRangeBy{Min: "[f", Max: "[f000000000000042run"}},
	} {
		if got := (List{Status: c.status}).after(c.shard, c.at); got != c.want {
			t.Errorf("%q after %+v on %d: %+v, want %+v", c.status, c.at, c.shard, got, c.want)
		}
	}
}

func TestParsePlace(t *testing.T) {
	t.Parallel()
	if at, err := parsePlace(5, "a000000000000042run ü"); err != nil || at != (place{42, "run ü", 5}) {
		t.Errorf("%+v, %v", at, err)
	}
	for _, s := range []string{"", "a", "a000000000000042", "a00000000000004xrun", "a-00000000000042run", strings.Repeat("a", 40)} {
		if at, err := parsePlace(5, s); err == nil {
			t.Errorf("%q is read as %+v", s, at)
		}
	}
}
