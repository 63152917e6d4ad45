//go:build !slowreads

package main

import (
	"context"
	"os"
)

func open(_ context.Context, path string) (*os.File, error) { return os.Open(path) } //nolint:gosec // whoever asks for a sum may read
