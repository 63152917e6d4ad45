package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
)

// file is a file and its sum.
type file struct{ path, sum string }

// printSums fans out the files under a directory, or attaches to the fan-out that did, and prints the sums once
// it has all of them.
func printSums(ctx context.Context, c *client.Client, o options) error {
	items := client.TryMap(files(o.dir), func(path string) umbel.Item[[]byte] {
		return umbel.Item[[]byte]{Input: []byte(path)}
	})
	run, err := client.FanOutItems(ctx, c, Checksum, items, o.start()...)
	if err != nil {
		return err
	}
	counts, err := run.Progress(ctx)
	if err != nil {
		return err
	}
	sums, err := collect(ctx, run, counts.Scheduled)
	if err != nil {
		return err
	}
	if err := write(sums); err != nil {
		return err
	}
	if failed := counts.Scheduled - int64(len(sums)); failed > 0 {
		return fmt.Errorf("%d of %d files could not be read", failed, counts.Scheduled)
	}
	return nil
}

// collect waits for all sums and names the files that have none.
func collect(ctx context.Context, run *client.Run[[]byte], total int64) ([]file, error) {
	bar := newBar(total)
	defer bar.Clear() //nolint:errcheck // a terminal that went away shows nothing
	var sums []file
	for r, err := range run.Results(ctx, client.WithInputs()) {
		if err != nil {
			return nil, err
		}
		path, err := Checksum.Input(r.Row)
		if err != nil {
			return nil, err
		}
		_ = bar.Add(1)
		if r.Err != nil {
			_ = bar.Clear()
			fmt.Fprintf(os.Stderr, "checksum: %q: %v\n", path, r.Err)
			continue
		}
		sums = append(sums, file{string(path), hex.EncodeToString(r.Value)})
	}
	return sums, nil
}

// write prints the lines of sha256sum, sorted by path, byte by byte.
func write(sums []file) error {
	slices.SortFunc(sums, func(a, b file) int { return cmp.Compare(a.path, b.path) })
	out := bufio.NewWriter(os.Stdout)
	for _, f := range sums {
		_, _ = out.WriteString(line(f)) // Flush returns its error
	}
	return out.Flush()
}

// escaped are the bytes that would break a line of sha256sum's in two.
var escaped = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`)

// line is what `sha256sum path` prints: a backslash in front says that the name has escapes.
func line(f file) string {
	name, mark := escaped.Replace(f.path), ""
	if name != f.path {
		mark = `\`
	}
	return mark + f.sum + "  " + name + "\n"
}

// newBar draws on a terminal, and nowhere else.
func newBar(total int64) *progressbar.ProgressBar {
	const often, width = 65 * time.Millisecond, 30
	return progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(os.Stderr),
		progressbar.OptionSetVisibility(term.IsTerminal(int(os.Stderr.Fd()))),
		progressbar.OptionSetDescription("hashing"),
		progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString("files"),
		progressbar.OptionThrottle(often), progressbar.OptionSetWidth(width), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetRenderBlankState(true),
	)
}
