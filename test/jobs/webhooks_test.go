package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/umbeltest"
	"github.com/umbelhq/umbel/worker"
)

// Web hooks of many tenants: a key that receivers tell repeats apart by, an end for those that are gone for good, and no
// more than ten at a time from one worker.

type Delivery struct {
	Tenant, URL string
	Body        []byte
}

var Deliver = umbel.Define[Delivery, umbel.None]("webhook.deliver")

// hooks is the receivers' side.
type hooks struct {
	mu       sync.Mutex
	requests map[string][]string // idempotency keys by URL
	now, top int                 // open at once
}

var errUnavailable = errors.New("503 unavailable")

// post answers each URL's first request with 503, and those of a tenant that has left with 410.
func (h *hooks) post(d Delivery, key string, between func()) error {
	h.mu.Lock()
	h.now++
	h.top = max(h.top, h.now)
	h.requests[d.URL] = append(h.requests[d.URL], key)
	first := len(h.requests[d.URL]) == 1
	h.mu.Unlock()
	between()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now--
	switch {
	case d.Tenant == "gone":
		return umbel.NonRetryable(umbel.Typed("gone", errors.New("410 gone")))
	case first:
		return errUnavailable
	}
	return nil
}

func TestWebHooks(t *testing.T) {
	inEnv(t, func(t *testing.T, env *umbeltest.Env) {
		receivers := &hooks{requests: map[string][]string{}}
		start(env, worker.Config{}, func(w *worker.Worker) {
			worker.Handle(w, Deliver, func(ctx context.Context, d Delivery) (umbel.None, error) {
				return umbel.None{}, receivers.post(d, worker.Info(ctx).IdempotencyKey, brief)
			}, worker.MaxConcurrency(10))
		})

		var deliveries []Delivery
		for i := range 100 {
			tenant := []string{"acme", "bolt", "gone", "dyne"}[i%4]
			deliveries = append(deliveries, Delivery{Tenant: tenant, URL: fmt.Sprintf("https://%s.example/%d", tenant, i), Body: []byte(`{}`)})
		}
		run, err := client.FanOutItems(t.Context(), env.Client(), Deliver, client.Map(slices.Values(deliveries), func(d Delivery) umbel.Item[Delivery] {
			return umbel.Item[Delivery]{Input: d, Key: d.URL}
		}))
		if err != nil {
			t.Fatal(err)
		}
		failed, ok := errors.AsType[*umbel.FanOutError](run.Wait(t.Context()))
		if !ok || failed.Counts.Completed != 75 || failed.Counts.Failed != 25 {
			t.Fatalf("%+v", failed)
		}
		for _, row := range failed.Sample {
			if row.Err.Type != "gone" || !row.Err.NonRetryable || row.Err.Attempt != 1 {
				t.Errorf("%s: %+v", row.Key, row.Err)
			}
		}
		keys := map[string]bool{}
		for url, sent := range receivers.requests {
			if len(slices.Compact(slices.Clone(sent))) != 1 {
				t.Errorf("%s: a repeat has another key: %q", url, sent)
			}
			keys[sent[0]] = true
		}
		if len(keys) != 100 || receivers.top != 10 {
			t.Errorf("%d keys, at most %d requests at once; want 100 and 10", len(keys), receivers.top)
		}
	})
}
