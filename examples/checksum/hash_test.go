package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/umbelhq/umbel"
)

func TestLine(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"a b":      "00  a b\n",
		"\xff\t":   "00  \xff\t\n",
		`a\b`:      `\00  a\\b` + "\n",
		"a\nb\r":   `\00  a\nb\r` + "\n",
		"\\\n\\n":  `\00  \\\n\\n` + "\n",
		"\x00\x1b": "00  \x00\x1b\n",
	} {
		if got := line(file{path, "00"}); got != want {
			t.Errorf("line of %q is %q, want %q", path, got, want)
		}
	}
}

// A file that fails would fail again; a handler that was told to end says why, and is tried again.
func TestChecksumFailures(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	_, err := checksum(t.Context(), []byte(path))
	if !errors.Is(err, os.ErrNotExist) || !umbel.NewFailure(err, 1).NonRetryable {
		t.Errorf("a file that is gone: %v, want a non-retryable %v", err, os.ErrNotExist)
	}
	if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(umbel.ErrLeaseLost)
	_, err = checksum(ctx, []byte(path))
	if !errors.Is(err, umbel.ErrLeaseLost) || umbel.NewFailure(err, 1).NonRetryable {
		t.Errorf("a lost lease: %v, want a retryable %v", err, umbel.ErrLeaseLost)
	}
}
