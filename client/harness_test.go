package client_test

import (
	"log/slog"
	"testing"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
)

// run returns the run of a workflow, or nil.
func (f *fake) run(w umbel.WorkflowID) *fakeRun {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.runs[key(umbel.DefaultNamespace, w)]
}

// resolve resolves one row, as a worker would.
func (f *fake) resolve(w umbel.WorkflowID, o int64, v string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.runs[key(umbel.DefaultNamespace, w)]
	r.resolve(o, r.rows[o], func(int64, umbel.StagedRow) (umbel.Payload, error) {
		return umbel.Payload{ContentType: umbel.ContentTypeJSON, Data: []byte(v)}, err
	})
	f.notify()
}

// rollback takes the run back to its first n results.
func (f *fake) rollback(w umbel.WorkflowID, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.runs[key(umbel.DefaultNamespace, w)]
	for _, res := range r.results[n:] {
		delete(r.resolved, res.Ordinal)
	}
	r.results = r.results[:n:n]
}

func (f *fake) count(op string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[op]
}

// writes counts the calls that may have written.
func (f *fake) writes() int {
	return f.count("Stage") + f.count("Commit") + f.count("Cancel")
}

func (f *fake) leftStaged() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.staged)
}

func key(ns string, w umbel.WorkflowID) string { return ns + "\x00" + string(w) }

func newClient(t testing.TB, f *fake) *client.Client {
	t.Helper()
	c, err := client.New(f, client.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// echo returns a row's input as its result.
func echo(_ int64, row umbel.StagedRow) (umbel.Payload, error) { return row.Input, nil }

var unavailable = &umbel.Error{Code: umbel.CodeUnavailable, Reason: "connection refused"}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
