package examples_test

import (
	"bufio"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/internal/localredis"
	"github.com/umbelhq/umbel/server"
)

const numbers = 300

// factors is what the program prints.
func factors() string {
	var b strings.Builder
	for i := 1; i <= numbers; i++ {
		fmt.Fprintf(&b, "%d:", i)
		for n, p := i, 2; n > 1; p++ {
			for ; n%p == 0; n /= p {
				fmt.Fprintf(&b, " %d", p)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestResumeKilledHalfway(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		data := filepath.Join(t.TempDir(), "data")
		killHalfway(t, func() *client.Admin { return openData(t, data) }, "", "-data", data)
	})
	t.Run("on a server", func(t *testing.T) {
		t.Parallel()
		addr, admin := serve(t, shortLease)
		killHalfway(t, func() *client.Admin { return admin }, addr)
	})
}

// killHalfway kills the program when it has printed a half, and starts it again. All comes out, and no number that was
// done is begun a second time.
func killHalfway(t *testing.T, look func() *client.Admin, addr string, args ...string) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	// The second half takes two seconds: time enough for the kill, however busy the machine is.
	args = append(args, "-n", fmt.Sprint(numbers), "-each", "100ms", "-log", log)
	cmd := program(t, "resume", args...)
	cmd.Env = append(os.Environ(), "UMBEL_ADDR="+addr)
	cmd.Stderr = t.Output()
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewReader(pipe)
	var first strings.Builder
	for range numbers / 2 {
		line, err := said.ReadString('\n')
		if err != nil {
			t.Fatalf("after %q: %v", first.String(), err)
		}
		first.WriteString(line)
	}
	killed := time.Now()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if !strings.HasPrefix(factors(), first.String()) {
		t.Errorf("the first process printed %q", first.String())
	}
	halfway := begunBy(t, log)
	if len(halfway) >= numbers {
		t.Fatalf("all %d numbers were begun before the kill", len(halfway))
	}

	again := program(t, "resume", args...)
	again.Env, again.Stderr = cmd.Env, t.Output()
	out, err := again.Output()
	if err != nil {
		t.Fatal(err)
	}
	sameLines(t, string(out), factors())
	done := doneBy(t, look(), killed)
	if len(done) < numbers/2 {
		t.Errorf("only %d numbers were done before the kill", len(done))
	}
	for n, times := range begunBy(t, log) {
		// What was in hand is begun once more.
		if times > 2 || done[n] && times > 1 {
			t.Errorf("%d was begun %d times; done before the kill: %t", n, times, done[n])
		}
	}
}

// doneBy returns the numbers whose result was recorded before an instant.
func doneBy(t *testing.T, admin *client.Admin, at time.Time) map[int]bool {
	t.Helper()
	done := map[int]bool{}
	id := umbel.WorkflowID(fmt.Sprintf("factors-to-%d", numbers))
	for e, err := range admin.History(t.Context(), id, client.HistoryQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == umbel.ActivityCompleted && e.At.Before(at) {
			done[int(e.Ordinal)+1] = true
		}
	}
	return done
}

// begunBy reads the program's log: how often each number was begun.
func begunBy(t *testing.T, log string) map[int]int {
	t.Helper()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	times := map[int]int{}
	for field := range strings.FieldsSeq(string(text)) {
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		times[n]++
	}
	return times
}

// openData returns what a user at a keyboard has, on the data that an embedded server left.
func openData(t *testing.T, dir string) *client.Admin {
	t.Helper()
	redis, err := localredis.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Close)
	engine, err := server.Open(t.Context(), redis.Client(), server.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	admin, err := client.NewAdmin(engine, client.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return admin
}
