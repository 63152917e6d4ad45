package jobs

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/umbeltest"
	"github.com/umbelhq/umbel/worker"
)

// A report every night, a section for each customer: whoever starts it again, and whenever, gets the run that is there,
// and the sections are put together by who gathers them.

type Customer struct{ ID int64 }

type Section struct{ Rows int }

type Report struct{ Customers, Rows int }

var Build = umbel.Define[Customer, Section]("report.section")

func nightly(ctx context.Context, c *client.Client, night time.Time, customers []Customer) (Report, error) {
	run, err := client.FanOut(ctx, c, Build, slices.Values(customers), client.WorkflowID(umbel.WorkflowID("nightly-"+night.Format(time.DateOnly))))
	if err != nil {
		return Report{}, err
	}
	sections, err := run.Gather(ctx)
	if err != nil {
		return Report{}, err
	}
	report := Report{Customers: len(sections)}
	for _, s := range sections {
		report.Rows += s.Rows
	}
	return report, nil
}

func TestNightlyReport(t *testing.T) {
	inEnv(t, func(t *testing.T, env *umbeltest.Env) {
		built := 0
		start(env, worker.Config{Concurrency: 1}, func(w *worker.Worker) {
			worker.Handle(w, Build, func(_ context.Context, c Customer) (Section, error) {
				built++
				brief()
				return Section{Rows: int(c.ID)}, nil
			})
		})
		customers := []Customer{{1}, {2}, {3}, {4}}
		night := time.Now()
		// The process that starts the report dies before it is done; its successor starts it again.
		dying, kill := context.WithTimeout(t.Context(), briefly+briefly/2)
		defer kill()
		if _, err := nightly(dying, env.Client(), night, customers); err == nil {
			t.Fatal("it was done at once")
		}
		report, err := nightly(t.Context(), env.Client(), night, customers)
		if err != nil || report != (Report{Customers: 4, Rows: 10}) || built != 4 {
			t.Errorf("%+v, %v, %d sections built", report, err, built)
		}
		if _, err = nightly(t.Context(), env.Client(), night.Add(24*time.Hour), customers); err != nil || built != 8 {
			t.Errorf("the next night: %v, %d sections built", err, built)
		}
	})
}
