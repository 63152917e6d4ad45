package jobs

import (
	"bufio"
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/umbeltest"
	"github.com/umbelhq/umbel/worker"
)

// The lines of a file, read while the start goes on; a line that is too long for the reader fails the start.

var Count = umbel.Define[string, int]("words.count")

func lines(r io.Reader) iter.Seq2[umbel.Item[string], error] {
	return func(yield func(umbel.Item[string], error) bool) {
		sc := bufio.NewScanner(r)
		for n := 1; sc.Scan(); n++ {
			if !yield(umbel.Item[string]{Input: sc.Text(), Key: "line " + strconv.Itoa(n)}, nil) {
				return
			}
		}
		if err := sc.Err(); err != nil {
			yield(umbel.Item[string]{}, err)
		}
	}
}

func TestLinesOfAFile(t *testing.T) {
	inEnv(t, func(t *testing.T, env *umbeltest.Env) {
		start(env, worker.Config{}, func(w *worker.Worker) {
			worker.Handle(w, Count, func(_ context.Context, line string) (int, error) { return len(strings.Fields(line)), nil })
		})
		name := filepath.Join(t.TempDir(), "list")
		if err := os.WriteFile(name, []byte("one\n\nthree more words\nlast without newline"), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		run, err := client.FanOutItems(t.Context(), env.Client(), Count, lines(f), client.WorkflowID("lines"))
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		words := 0
		for r, err := range run.Results(t.Context(), client.Ordered()) {
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, r.Key)
			words += r.Value
		}
		if got := strings.Join(keys, ", "); got != "line 1, line 2, line 3, line 4" || words != 7 {
			t.Errorf("%s: %d words", got, words)
		}

		long := strings.NewReader("short\n" + strings.Repeat("x", bufio.MaxScanTokenSize))
		if _, err := client.FanOutItems(t.Context(), env.Client(), Count, lines(long), client.WorkflowID("long")); !errors.Is(err, bufio.ErrTooLong) {
			t.Errorf("a line that is too long: %v", err)
		}
		if _, err := client.AttachRaw(env.Client(), "long").Progress(t.Context()); !errors.Is(err, umbel.ErrNotFound) {
			t.Errorf("the start that failed left a run behind: %v", err)
		}
	})
}
