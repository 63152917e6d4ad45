package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/umbelhq/umbel"
)

func read(f itemFormat, r io.Reader) (items []string, err error) {
	for p, err := range f.items(r) {
		if err != nil {
			return items, err
		}
		items = append(items, string(p.Data))
	}
	return items, nil
}

func TestItems(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", umbel.MaxPayloadBytes)
	for _, tc := range []struct {
		name   string
		format itemFormat
		in     string
		want   []string
	}{
		{"nothing", itemFormat{}, "", nil},
		{"lines", itemFormat{}, "a\nb\n", []string{"a", "b"}},
		{"the last line without a newline", itemFormat{}, "a\nb", []string{"a", "b"}},
		{"empty lines", itemFormat{}, "\n\na\n", []string{"", "", "a"}},
		{"carriage returns stay", itemFormat{}, "a\r\nb\r\n", []string{"a\r", "b\r"}},
		{"bytes stay", itemFormat{}, "\x00\xff {}\n", []string{"\x00\xff {}"}},
		{"the longest line", itemFormat{}, long + "\n" + long, []string{long, long}},
		{"NUL-separated", itemFormat{null: true}, "a\nb\x00c\x00", []string{"a\nb", "c"}},
		{"the longest item", itemFormat{null: true}, long + "\x00", []string{long}},
		{"JSON", itemFormat{jsonl: true}, "{\"a\": 1}\n null \n\"x\"\r\n", []string{`{"a": 1}`, " null ", "\"x\"\r"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			for name, r := range map[string]io.Reader{
				"at once": strings.NewReader(tc.in), "in halves": iotest.HalfReader(strings.NewReader(tc.in)),
				"end with data": iotest.DataErrReader(strings.NewReader(tc.in)),
			} {
				if got, err := read(tc.format, r); err != nil || !slices.Equal(got, tc.want) {
					t.Errorf("%s: read %.100q (%v)", name, got, err)
				}
			}
		})
	}
}

func TestItemsAreRefused(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", umbel.MaxPayloadBytes+1)
	for _, tc := range []struct {
		format itemFormat
		in     string
		code   umbel.Code
		want   string
	}{
		{itemFormat{}, "a\n" + long, umbel.CodeLimit, "standard input, line 2: an item may have at most 2097152 bytes"},
		{itemFormat{}, "a\n" + long + "\n", umbel.CodeLimit, "standard input, line 2: an item may have at most 2097152 bytes"},
		{itemFormat{null: true}, long + "\x00", umbel.CodeLimit, "standard input, item 1: an item may have"},
		{itemFormat{jsonl: true}, "1\n{\"a\":\n", umbel.CodeInvalid, `standard input, line 2: "{\"a\":" is no JSON value`},
		{itemFormat{jsonl: true}, "1\n\n2\n", umbel.CodeInvalid, `standard input, line 2: "" is no JSON value`},
	} {
		_, err := read(tc.format, strings.NewReader(tc.in))
		if umbel.CodeOf(err) != tc.code || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%.20q: %v, want %s: %s", tc.in, err, tc.code, tc.want)
		}
	}
}

func TestItemsReadError(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	got, err := read(itemFormat{}, io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken)))
	if !slices.Equal(got, []string{"a"}) || !errors.Is(err, broken) || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("read %q, %v", got, err)
	}
}

// Content types tell apart how items were cut.
func TestItemsContentType(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]itemFormat{"text/plain": {}, "application/json": {jsonl: true}} {
		for p := range f.items(strings.NewReader("1")) {
			if p.ContentType != want {
				t.Errorf("%+v gives %q, want %q", f, p.ContentType, want)
			}
		}
	}
}

// Memory does not grow with the number of items.
func TestItemsStream(t *testing.T) {
	const lines, most = 200_000, 8 << 20
	r, w := io.Pipe()
	go func() {
		defer w.Close()
		for i := range lines {
			fmt.Fprintf(w, "item %d with some bytes behind it to make it longer than its number\n", i)
		}
	}()
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	n := 0
	for _, err := range new(itemFormat).items(r) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == lines/2 {
			runtime.GC()
			runtime.ReadMemStats(&now)
		}
	}
	if n != lines {
		t.Errorf("read %d items of %d", n, lines)
	}
	if grown := int64(now.HeapAlloc) - int64(before.HeapAlloc); grown > most {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
}

func TestInterruptible(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	defer w.Close()
	ctx, cancel := withCause(t)
	items := make(chan error)
	go func() {
		_, err := read(itemFormat{}, interruptible(ctx, r))
		items <- err
	}()
	_, _ = w.Write([]byte("a\n"))
	cause := errors.New("stop")
	cancel(cause)
	if err := <-items; !errors.Is(err, cause) {
		t.Errorf("reading ended with %v", err)
	}
}
