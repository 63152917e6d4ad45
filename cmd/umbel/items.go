package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/spf13/cobra"

	"github.com/umbelhq/umbel"
)

// Content types of items and results.
const (
	contentTypeText  = "text/plain"
	contentTypeBytes = "application/octet-stream"
)

// itemFormat says how standard input is cut into items.
type itemFormat struct {
	null  bool // they end with NUL in place of a newline
	jsonl bool // each line is a JSON value
}

func (f *itemFormat) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&f.null, "null", "0", false, "items end with NUL in place of a newline")
	cmd.Flags().BoolVar(&f.jsonl, "jsonl", false, "each line is a JSON value, and travels as application/json")
	cmd.MarkFlagsMutuallyExclusive("null", "jsonl")
}

// read returns the items of standard input. It ends with the command's context.
func (f *itemFormat) read(cmd *cobra.Command) iter.Seq2[umbel.Payload, error] {
	if isTerminal(cmd.InOrStdin()) {
		fmt.Fprintln(cmd.ErrOrStderr(), "umbel: reading items from the terminal, one a line; Ctrl-D ends them")
	}
	return f.items(interruptible(cmd.Context(), cmd.InOrStdin()))
}

// items reads one item after the other from r. Memory does not grow with their number. An item that breaks a rule
// ends the sequence with an error that matches umbel.ErrInvalid or umbel.ErrLimit and says which it was.
func (f *itemFormat) items(r io.Reader) iter.Seq2[umbel.Payload, error] {
	noun, end := "line", byte('\n')
	if f.null {
		noun, end = "item", 0
	}
	contentType := contentTypeText
	if f.jsonl {
		contentType = umbel.ContentTypeJSON
	}
	return func(yield func(umbel.Payload, error) bool) {
		br := bufio.NewReaderSize(r, 64<<10)
		for n := int64(1); ; n++ {
			data, err := readItem(br, end)
			field := fmt.Sprintf("standard input, %s %d", noun, n)
			switch {
			case errors.Is(err, io.EOF):
				return
			case errors.Is(err, errTooLong):
				err = &umbel.Error{
					Code: umbel.CodeLimit, NotApplied: true,
					Reason: fmt.Sprintf("%s: an item may have at most %d bytes, and this one has more", field, umbel.MaxPayloadBytes),
				}
			case err != nil:
				err = fmt.Errorf("%s: %w", field, err)
			case f.jsonl && !json.Valid(data):
				err = umbel.Invalid(field+":", string(data), "is no JSON value")
			}
			if !yield(umbel.Payload{ContentType: contentType, Data: data}, err) || err != nil {
				return
			}
		}
	}
}

var errTooLong = errors.New("too long")

// readItem reads up to end, which it drops, or to the end of input. The error is io.EOF if nothing was left.
func readItem(r *bufio.Reader, end byte) ([]byte, error) {
	var item []byte
	for {
		part, err := r.ReadSlice(end)
		if len(item)+len(part) > umbel.MaxPayloadBytes+1 {
			return nil, errTooLong
		}
		item = append(item, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(item) > 0:
			err = nil
		case err != nil:
			return nil, err
		default:
			item = bytes.TrimSuffix(item, []byte{end})
		}
		if len(item) > umbel.MaxPayloadBytes {
			return nil, errTooLong
		}
		return item, err
	}
}

// interruptible makes reads of r end with ctx: a read of a terminal or a pipe that nobody writes to would not.
// What is read when ctx ends is lost.
func interruptible(ctx context.Context, r io.Reader) io.Reader {
	pr, pw := io.Pipe()
	go func() {
		_, err := io.Copy(pw, r)
		pw.CloseWithError(err)
	}()
	context.AfterFunc(ctx, func() { pw.CloseWithError(context.Cause(ctx)) })
	return pr
}
