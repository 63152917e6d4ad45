package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/umbelhq/umbel"
)

func TestSafeText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain, ünïcode 👩‍👧":  "plain, ünïcode 👩‍👧",
		"two\nlines":          "two\nlines",
		"\x1b[2Jgone\r":       `\x1b[2Jgone\r`,
		"bell\a tab\t":        `bell\a tab\t`,
		"\u0085\u009b31m":     `\u0085\u009b31m`,
		"\u202Eright to left": `\u202eright to left`,
		"not \xff UTF-8":      `not \xff UTF-8`,
		"\uFFFD is":           "\uFFFD is",
	} {
		if got := safeText(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestCells(t *testing.T) {
	t.Parallel()
	if got := cell("a\nb"); got != `a\nb` {
		t.Errorf("two lines in a cell: %q", got)
	}
	if got := payloadCell(umbel.Payload{Data: []byte(strings.Repeat("é", umbel.MaxPayloadBytes/2))}); len(got) > 4*maxCell || !strings.HasSuffix(got, "é…") {
		t.Errorf("a large payload: %q", got)
	}
	if got := payloadCell(umbel.Payload{}); got != `""` {
		t.Errorf("an empty payload: %q", got)
	}
}

func TestQuoteArg(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"thumbs-2026_1.a:b": "thumbs-2026_1.a:b", "a b": "'a b'", "": "''", "it's": `'it'\''s'`, "-x": "'-x'", "$HOME": "'$HOME'", "{}*": "'{}*'",
	} {
		if got := quoteArg(in); got != want {
			t.Errorf("%q became %s, want %s", in, got, want)
		}
	}
}

func TestExitCode(t *testing.T) {
	t.Parallel()
	for want, errs := range map[int][]error{
		exitFailed:      {errors.New("x"), umbel.ErrAlreadyExists, umbel.ErrOverloaded, umbel.ErrInternal},
		exitUsage:       {umbel.ErrInvalid, umbel.ErrLimit, usagef("x")},
		exitUnreachable: {umbel.ErrNotFound, umbel.ErrUnavailable, &hintError{"x", umbel.ErrUnavailable}},
	} {
		for _, err := range errs {
			if got := exitCode(err); got != want {
				t.Errorf("%v exits with %d, want %d", err, got, want)
			}
		}
	}
}
