package chaos_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	api "github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/test/witness"
	"github.com/umbelhq/umbel/worker"
)

// roleVar names the environment variable that makes this binary a worker; its value is the servers' addresses.
const roleVar = "UMBEL_TEST_WORKER_ADDR"

// pill ends the process that takes it.
var pill = api.Define[int, int]("pill", api.Retry(api.RetryPolicy{MaxAttempts: 3, Initial: 10 * time.Millisecond}))

// takePills is the main function of a worker whose handler calls os.Exit.
func takePills(addr string) error {
	conn, err := client.Dial(addr)
	if err != nil {
		return err
	}
	w, err := worker.New(conn, worker.Config{})
	if err != nil {
		return err
	}
	worker.Handle(w, pill, func(_ context.Context, code int) (int, error) {
		os.Exit(code)
		return 0, nil
	})
	return w.Run(context.Background())
}

// Must show 8 of the network: with three attempts a handler that calls os.Exit(1) ends three processes and no more, and
// its row is failed. Promise 13.
func TestPoisonPillEndsAsFailedRow(t *testing.T) {
	t.Parallel()
	in := installServers(t, api.MinLease)
	run, err := client.FanOutItems(t.Context(), in.connect(), pill, func(yield func(api.Item[int], error) bool) {
		yield(api.Item[int]{Input: 1, Key: "poison"}, nil)
	}, client.WorkflowID("pills"))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- run.Wait(t.Context()) }()
	deaths := 0
	for over := false; !over; {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), roleVar+"="+in.addr())
		p := witness.Start(t, cmd)
		select {
		case <-p.Gone:
			exit, ok := errors.AsType[*exec.ExitError](p.Err)
			if !ok || exit.ExitCode() != 1 {
				t.Fatalf("the worker ended with %v: %s", p.Err, p.Stderr.String())
			}
			deaths++
		case err = <-ended:
			over = true
			p.Kill()
		}
	}
	failed, ok := errors.AsType[*api.FanOutError](err)
	if !ok || failed.Status != api.StatusFailed || failed.Counts != (api.Counts{Scheduled: 1, Failed: 1}) || len(failed.Sample) != 1 {
		t.Fatalf("the run ended with %v, want one row failed", err)
	}
	if f := failed.Sample[0]; f.Err.Type != api.FailureLeaseExpired || f.Attempt != 3 || f.Key != "poison" {
		t.Errorf("the row failed with %+v: %+v, want LeaseExpired at attempt 3", f, f.Err)
	}
	if deaths != 3 {
		t.Errorf("%d processes died, want 3", deaths)
	}
}
