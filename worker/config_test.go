package worker

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
)

func TestCase38ConcurrencyRefused(t *testing.T) {
	for _, n := range []int{-1, umbel.MaxConcurrency + 1} {
		if _, err := New(newFake(), Config{Concurrency: n}); !errors.Is(err, umbel.ErrInvalid) || !strings.Contains(err.Error(), "concurrency") {
			t.Errorf("concurrency %d: %v", n, err)
		}
	}
	w, err := New(newFake(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	if s := w.Stats(); s.Slots != DefaultConcurrency {
		t.Errorf("the default is %d slots", s.Slots)
	}
}

func TestConfigReportsAllProblems(t *testing.T) {
	_, err := New(nil, Config{
		Namespace: "a\nb", TaskQueue: "\xff", Node: strings.Repeat("n", 256), Identity: "\x00",
		Concurrency: -1, Grace: -1, PollWait: 1500 * time.Microsecond, MaxSilence: time.Millisecond,
		Interceptors: []umbel.Interceptor{nil},
	})
	if !errors.Is(err, umbel.ErrInvalid) {
		t.Fatalf("err: %v", err)
	}
	for _, field := range []string{
		"engine", "namespace", "task queue", "node", "identity", "concurrency", "grace", "poll wait", "max silence", "interceptor",
	} {
		if !strings.Contains(err.Error(), "umbel: "+field+" ") {
			t.Errorf("%s is not named in:\n%v", field, err)
		}
	}
	for _, c := range []Config{{PollWait: 51 * time.Second}, {PollWait: -time.Second}, {Grace: umbel.MaxDelay + 1}} {
		if _, err := New(newFake(), c); !errors.Is(err, umbel.ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestIdentityIsAName(t *testing.T) {
	a, b := newIdentity(), newIdentity()
	if a == b {
		t.Error("two workers share an identity")
	}
	if err := umbel.ValidateName("identity", a); err != nil {
		t.Error(err)
	}
}
