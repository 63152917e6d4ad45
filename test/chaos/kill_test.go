package chaos_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	api "github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/test/witness"
)

const workflow = "chaos"

// kills draws in which order to kill what: each of them so often, the starter once, and all workers at once. That one
// comes early: until their leases have lapsed others get through many rows, and the kills after it need some too.
func kills(random *rand.Rand, times int) []string {
	out := []string{"start"}
	for _, what := range []string{"server 0", "server 1", "worker 0", "worker 1", "worker 2", "redis"} {
		for range times {
			out = append(out, what)
		}
	}
	random.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return slices.Insert(out, random.IntN(3), "all workers")
}

// next draws at how many resolved rows the next of so many kills comes: they spread over what is left of the run, so that
// what was killed has come back and has work in hand again.
func next(random *rand.Rand, resolved, items int64, left int) int64 {
	step := max((items*9/10-resolved)/int64(left), 2)
	return resolved + step/2 + random.Int64N(step/2+1)
}

// Must show 2 of the network: each item once and right, whoever is killed. Promises 3, 6, 7, 8, 10, 11, 13.
func TestChaos(t *testing.T) {
	t.Parallel()
	items, times := 2_000, 1
	if witness.Full() {
		items, times = 20_000, 2
	}
	random := witness.Seeded(t)
	log := filepath.Join(t.TempDir(), "log")
	// The sleep bounds how many rows are through before a quick machine comes to the last kill.
	in := install(t, 2*time.Second, "sh", "-c", `echo "$UMBEL_ORDINAL" >> "$0"; sleep 0.08; read -r item; echo "did $item"`, log)
	watch := witness.Observe(t, in.redis, workflow)

	var input bytes.Buffer
	for i := range items {
		fmt.Fprintf(&input, "item %d\n", i)
	}
	startAndWait := func() *witness.Process {
		cmd := exec.Command(umbel, "start", "--addr", in.addr(), "--workflow-id", workflow, "--wait")
		cmd.Stdin = bytes.NewReader(input.Bytes())
		return witness.Start(t, cmd)
	}
	starter := startAndWait()
	order := kills(random, times)
	for i, what := range order {
		at := next(random, watch.Counts(t).Resolved(), int64(items), len(order)-i)
		before := watch.Until(t, starter, func(c api.Counts) bool { return c.Resolved() >= at && c.Claimed > 0 })
		held := "rows claimed"
		switch what {
		case "server 0", "server 1":
			i := int(what[len(what)-1] - '0')
			in.servers[i].Kill()
			in.startServer(i)
		case "worker 0", "worker 1", "worker 2":
			i := int(what[len(what)-1] - '0')
			held = in.killWorkers(watch, starter, i)
			in.startWorker(i)
		case "all workers":
			held = in.killWorkers(watch, starter, 0, 1, 2)
			in.goesOn(watch, starter)
		case "redis":
			in.redis.Restart(t)
		case "start":
			starter.Kill()
			starter = startAndWait()
		}
		t.Logf("killed %s at %+v: %s", what, before, held)
	}
	starter.Ended(t)

	in.checkLog(log, items)
	in.checkResults(items)
	h := witness.ReadHistory(t, in.redis, workflow, int64(items))
	if h.Failures[api.FailureLeaseExpired] == 0 {
		t.Error("no lease expired: the kills met nothing that a worker had")
	}
	h.Only(t, api.FailureLeaseExpired)
	t.Logf("history: %d events, failed attempts %v, at most %d attempts", h.Events, h.Failures, h.Attempts)
}

// killWorkers kills workers while each of them holds rows.
func (in *installation) killWorkers(watch witness.Observer, running *witness.Process, which ...int) string {
	in.t.Helper()
	claims := 0
	watch.Until(in.t, running, func(api.Counts) bool {
		claims = 0
		for _, i := range which {
			n := len(watch.Leases(in.t, in.workers[i]))
			if n == 0 {
				return false
			}
			claims += n
		}
		return true
	})
	for _, i := range which {
		in.workers[i].Signal(9)
	}
	left := 0
	for _, i := range which {
		in.workers[i].Kill()
		left += len(watch.Leases(in.t, in.workers[i]))
	}
	if left == 0 {
		in.t.Errorf("the kill of workers %v met no claim of theirs", which)
	}
	return fmt.Sprintf("%d claims held, %d left", claims, left)
}

// goesOn starts all workers anew: within one and a half leases they run on, and no row is left in dead hands. Where
// service was interrupted, as on a machine that stood still for long, leases count from when it went on.
func (in *installation) goesOn(watch witness.Observer, running *witness.Process) {
	in.t.Helper()
	killed := time.Now()
	dead := in.workers
	before := watch.Counts(in.t)
	for i := range in.workers {
		in.startWorker(i)
	}
	watch.Until(in.t, running, func(c api.Counts) bool { return c.Completed > before.Completed })
	on := time.Since(killed)
	watch.Until(in.t, running, func(api.Counts) bool {
		return !slices.ContainsFunc(dead[:], func(p *witness.Process) bool { return len(watch.Leases(in.t, p)) > 0 })
	})
	back := time.Since(killed)
	most := in.lease * 3 / 2
	if gap := watch.Gap(in.t); gap.After(killed) {
		most += gap.Sub(killed)
	}
	if on > most || back > most {
		in.t.Errorf("after all workers were killed work went on after %v, and the rows in their hands came back after %v; want both within %v", on, back, most)
	}
	in.t.Logf("after all workers were killed work went on after %v; what they held came back after %v", on, back)
}

// checkLog wants each ordinal at least once: a command may run again, but none is left out.
func (in *installation) checkLog(path string, items int) {
	in.t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		in.t.Fatal(err)
	}
	ran := map[int]int{}
	for line := range strings.Lines(string(content)) {
		n, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			in.t.Fatalf("the log has a line %q", line)
		}
		ran[n]++
	}
	twice := 0
	for i := range items {
		if ran[i] == 0 {
			in.t.Errorf("ordinal %d is missing in the log", i)
		}
		if ran[i] > 1 {
			twice++
		}
	}
	if len(ran) != items {
		in.t.Errorf("the log has %d ordinals, want %d", len(ran), items)
	}
	in.t.Logf("%d commands ran for %d items, %d of them more than once", len(strings.Split(string(content), "\n"))-1, items, twice)
}

// checkResults wants each ordinal once, with what its command wrote.
func (in *installation) checkResults(items int) {
	in.t.Helper()
	cmd := exec.Command(umbel, "results", "--addr", in.addr(), "--format", "json", workflow)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		in.t.Fatalf("umbel results: %v\n%s", err, stderr.String())
	}
	seen := map[int]bool{}
	dec := json.NewDecoder(bytes.NewReader(out))
	for dec.More() {
		var r struct {
			Ordinal int    `json:"ordinal"`
			Status  string `json:"status"`
			Result  string `json:"result"`
		}
		if err := dec.Decode(&r); err != nil {
			in.t.Fatal(err)
		}
		if want := fmt.Sprintf("did item %d\n", r.Ordinal); seen[r.Ordinal] || r.Status != "completed" || r.Result != want {
			in.t.Errorf("results has %+v (twice: %t), want completed with %q, once", r, seen[r.Ordinal], want)
		}
		seen[r.Ordinal] = true
	}
	if want := slices.Collect(intsTo(items)); !slices.Equal(slices.Sorted(maps.Keys(seen)), want) {
		in.t.Errorf("results has %d ordinals, want each of %d", len(seen), items)
	}
}

func intsTo(n int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}
