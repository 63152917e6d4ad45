package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/umbeltest"
	"github.com/umbelhq/umbel/worker"
)

// A batch of prompts for a service that says how long to wait: that, and not the policy's own wait, is when the next
// attempt starts.

type Prompt struct{ Text string }

type Answer struct{ Text string }

var Ask = umbel.Define[Prompt, Answer]("llm.ask", umbel.StartToClose(5*time.Minute), umbel.Retry(umbel.RetryPolicy{MaxAttempts: 20}))

// quota is a service that takes so many prompts a minute.
type quota struct {
	perMinute int

	mu     sync.Mutex
	window time.Time
	used   int
	calls  int
}

// ask returns a status, and with 429 when to come again.
func (q *quota) ask(p Prompt) (answer string, status int, after time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.calls++
	if p.Text == "" {
		return "", 400, 0
	}
	now := time.Now()
	if now.Sub(q.window) >= time.Minute {
		q.window, q.used = now, 0
	}
	if q.used == q.perMinute {
		return "", 429, q.window.Add(time.Minute).Sub(now)
	}
	q.used++
	return strings.ToUpper(p.Text), 200, 0
}

func (q *quota) handle(_ context.Context, p Prompt) (Answer, error) {
	answer, status, after := q.ask(p)
	switch {
	case status == 429 || status >= 500:
		return Answer{}, umbel.RetryAfter(umbel.Typed("overloaded", fmt.Errorf("status %d", status)), after)
	case status == 400:
		return Answer{}, umbel.NonRetryable(umbel.Typed("bad_prompt", errors.New("the prompt is empty")))
	}
	return Answer{Text: answer}, nil
}

func TestPrompts(t *testing.T) {
	inEnv(t, func(t *testing.T, env *umbeltest.Env) {
		service := &quota{perMinute: 50}
		start(env, worker.Config{}, func(w *worker.Worker) { worker.Handle(w, Ask, service.handle) })

		prompts := make([]Prompt, 200)
		for i := range prompts {
			prompts[i].Text = fmt.Sprintf("prompt %d", i)
		}
		prompts[50].Text = ""
		begun := time.Now()
		run, err := client.FanOut(t.Context(), env.Client(), Ask, slices.Values(prompts))
		if err != nil {
			t.Fatal(err)
		}
		answers, err := run.Gather(t.Context())
		failed, ok := errors.AsType[*umbel.FanOutError](err)
		if !ok || failed.Counts.Failed != 1 || failed.Sample[0].Ordinal != 50 || failed.Sample[0].Err.Type != "bad_prompt" {
			t.Fatalf("gather: %v", err)
		}
		if answers[199].Text != "PROMPT 199" {
			t.Errorf("answer 199: %+v", answers[199])
		}
		// 199 prompts are four windows; no call is made that the service has not asked for.
		if took := time.Since(begun); took < 3*time.Minute || took > 3*time.Minute+5*time.Second {
			t.Errorf("took %v, want three windows' wait", took)
		}
		if most := 200 + 150 + 100 + 50; service.calls > most {
			t.Errorf("%d calls, want at most %d", service.calls, most)
		}
	})
}
