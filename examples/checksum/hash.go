package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"

	"github.com/umbelhq/umbel"
)

// Checksum takes a file's path and returns the SHA-256 of what is in it. Both are bytes: a path need not be
// valid UTF-8.
var Checksum = umbel.Define[[]byte, []byte]("checksum")

// checksum is the handler of [Checksum].
func checksum(ctx context.Context, path []byte) ([]byte, error) {
	sum, err := hashFile(ctx, string(path))
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		// Another attempt would find the file as it is. Who reads the error knows the path.
		return nil, umbel.NonRetryable(failed.Err)
	}
	return sum, err
}

func hashFile(ctx context.Context, path string) ([]byte, error) {
	f, err := open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	h := sha256.New()
	if _, err := io.Copy(h, reader{ctx, f}); err != nil {
		return nil, err
	}
	return h.Sum(nil), nil
}

// reader ends with its context: a large file must not outlast a lost lease or the worker's stop.
type reader struct {
	ctx context.Context //nolint:containedctx // it lives as long as one call
	r   io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.r.Read(p)
}
