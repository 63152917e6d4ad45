package client_test

import (
	"encoding/hex"
	"iter"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
)

// spec is a start as a value.
type spec struct {
	items      []umbel.Item[umbel.Payload]
	types      []string // of items
	retry      umbel.RetryPolicy
	stc        time.Duration
	startAfter time.Duration
	queue      string
	node       string
	existing   client.OnExisting
}

func (s spec) calls() iter.Seq2[umbel.Call, error] {
	return func(yield func(umbel.Call, error) bool) {
		for i, it := range s.items {
			a := umbel.Define[umbel.Payload, umbel.Payload](s.types[i], umbel.Retry(s.retry), umbel.StartToClose(s.stc))
			if !yield(a.Call(it), nil) {
				return
			}
		}
	}
}

// commit starts s and returns what was committed.
func (s spec) commit(t interface{ Fatal(...any) }, c *client.Client, f *fake) umbel.CommitRequest {
	run, err := client.FanOutMixed(tb.Context(), c, s.calls(),
		client.StartAfter(s.startAfter), client.TaskQueue(s.queue), client.Node(s.node), s.existing)
	if err != nil {
		t.Fatal(err)
	}
	return f.run(run.WorkflowID()).commit
}

// resolved is s with its defaults applied, by other means than the package's.
func (s spec) resolved() spec {
	s.items = slices.Clone(s.items)
	for i := range s.items {
		it := &s.items[i]
		for _, q := range []string{s.queue, "default"} {
			if it.TaskQueue == "" {
				it.TaskQueue = q
			}
		}
		if it.Node == "" {
			it.Node = s.node
		}
		if !it.NotBefore.IsZero() {
			it.NotBefore = it.NotBefore.Add(time.Millisecond - 1).Truncate(time.Millisecond)
		}
		if it.Input.Data == nil {
			it.Input.Data = []byte{}
		}
	}
	s.retry = s.retry.WithDefaults()
	if len(s.items) == 0 {
		s.retry, s.stc = umbel.RetryPolicy{}, 0 // no call carries them
	}
	s.queue, s.node, s.existing = "", "", 0
	return s
}

// tb gives the rapid properties a context.
var tb testing.TB

func genSpec() *rapid.Generator[spec] {
	few := func(values ...string) *rapid.Generator[string] { return rapid.SampledFrom(values) }
	ms := rapid.Map(rapid.SampledFrom([]int{0, 0, 1, 2, 1000}), func(n int) time.Duration {
		return time.Duration(n) * time.Millisecond
	})
	return rapid.Custom(func(t *rapid.T) spec {
		var s spec
		for range rapid.IntRange(0, 3).Draw(t, "n") {
			it := umbel.Item[umbel.Payload]{
				Key: few("", "a", "ab", "b").Draw(t, "key"), Node: few("", "a", "n").Draw(t, "node"),
				TaskQueue: few("", "default", "q").Draw(t, "queue"), Delay: ms.Draw(t, "delay"),
				Input: umbel.Payload{
					ContentType: few("", "a", "text/plain").Draw(t, "content type"),
					Data:        []byte(few("", "a", "ab", "\x00", "\x01a").Draw(t, "data")),
				},
			}
			if at := rapid.IntRange(0, 3).Draw(t, "not before"); at > 0 {
				it.NotBefore = time.Unix(0, int64(at-1)*int64(time.Millisecond)/2)
			}
			s.items = append(s.items, it)
			s.types = append(s.types, few("a", "b", "ba").Draw(t, "type"))
		}
		s.retry.MaxAttempts = rapid.IntRange(0, 2).Draw(t, "attempts")
		s.retry.Initial = ms.Draw(t, "initial")
		s.retry.Factor = rapid.SampledFrom([]float64{0, 1, 2}).Draw(t, "factor")
		s.retry.Jitter = rapid.SampledFrom([]float64{0, 0.2, 1}).Draw(t, "jitter")
		s.retry.NonRetryable = rapid.SampledFrom([][]string{nil, {"a"}, {"a", "b"}, {"ab"}}).Draw(t, "non-retryable")
		s.stc, s.startAfter = ms.Draw(t, "stc"), ms.Draw(t, "start after")
		s.queue, s.node = few("", "default", "q").Draw(t, "start queue"), few("", "n").Draw(t, "start node")
		s.existing = rapid.SampledFrom([]client.OnExisting{client.SameInputs, client.Existing}).Draw(t, "existing")
		return s
	})
}

// change returns s with one thing about it drawn anew.
func change(t *rapid.T, s spec) spec {
	other := genSpec().Draw(t, "other")
	s.items, s.types = slices.Clone(s.items), slices.Clone(s.types)
	n := min(len(s.items), len(other.items))
	switch what := rapid.IntRange(0, 14).Draw(t, "what"); {
	case what == 0:
		s.retry.MaxAttempts = other.retry.MaxAttempts
	case what == 1:
		s.retry.Initial = other.retry.Initial
	case what == 2:
		s.retry.Factor = other.retry.Factor
	case what == 3:
		s.retry.Jitter = other.retry.Jitter
	case what == 4:
		s.retry.NonRetryable = other.retry.NonRetryable
	case what == 5:
		s.stc = other.stc
	case what == 6:
		s.startAfter = other.startAfter
	case what == 7:
		s.items, s.types = append(s.items, other.items...), append(s.types, other.types...)
	case what == 8:
		s.queue, s.node = other.queue, other.node
	case n == 0:
	case what == 9:
		s.types[n-1] = other.types[n-1]
	case what == 10:
		s.items[n-1].Key = other.items[n-1].Key
	case what == 11:
		s.items[n-1].Delay = other.items[n-1].Delay
	case what == 12:
		s.items[n-1].NotBefore = other.items[n-1].NotBefore
	case what == 13:
		s.items[n-1].Input.Data = other.items[n-1].Input.Data
	case what == 14:
		s.items[n-1].Input.ContentType = other.items[n-1].Input.ContentType
	}
	return s
}

// Two starts have the same digest exactly if they are the same after defaults; OnExisting is no part of it.
func TestPromise2DigestTellsStartsApart(t *testing.T) {
	tb = t
	f := &fake{}
	c := newClient(t, f)
	rapid.Check(t, func(t *rapid.T) {
		a := genSpec().Draw(t, "a")
		b := genSpec().Draw(t, "b")
		if rapid.Bool().Draw(t, "close") {
			b = change(t, a)
		}
		same := reflect.DeepEqual(a.resolved(), b.resolved())
		if da, db := a.commit(t, c, f).Digest, b.commit(t, c, f).Digest; (da == db) != same {
			t.Fatalf("same start: %v, same digest: %v", same, da == db)
		}
	})
}

// The digest of a start is the same in every process and version: runs outlive both.
func TestPromise2DigestGolden(t *testing.T) {
	tb = t
	f := &fake{}
	c := newClient(t, f)
	full := spec{
		items: []umbel.Item[umbel.Payload]{
			{Input: umbel.Payload{ContentType: "application/json", Data: []byte(`{"n":1}`)}, Key: "k", Node: "gpu-1"},
			{Input: umbel.Payload{Data: []byte{0, 0xff}}, TaskQueue: "slow", Delay: time.Minute,
				NotBefore: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)},
		},
		types: []string{"resize", "ask"},
		retry: umbel.RetryPolicy{MaxAttempts: 3, NonRetryable: []string{"bad"}},
		stc:   2 * time.Minute, startAfter: time.Second,
	}
	for _, tc := range []struct {
		spec spec
		want string
	}{
		{spec{}, "5f42968527bfb25ac27643fb0753f8cdb8c4b98f6c19bca1fa216b6e7647da0b"},
		{full, "a0b116292feb32d0a8a10b3adf887418ca02c0d36f4b10f0c32897fe282fba4c"},
	} {
		d := tc.spec.commit(t, c, f).Digest
		if got := hex.EncodeToString(d[:]); got != tc.want {
			t.Errorf("got %s, want %s", got, tc.want)
		}
	}
}

func TestPoliciesTravelWithTheStart(t *testing.T) {
	f := &fake{}
	c := newClient(t, f)
	a := umbel.Define[int, int]("a", umbel.Retry(umbel.RetryPolicy{MaxAttempts: 5}), umbel.StartToClose(time.Minute))
	run, err := client.FanOut(t.Context(), c, a, upTo(2))
	if err != nil {
		t.Fatal(err)
	}
	got := f.run(run.WorkflowID()).commit.Types
	want := umbel.TypePolicy{Type: "a", StartToClose: time.Minute, Retry: umbel.RetryPolicy{MaxAttempts: 5}.WithDefaults()}
	if len(got) != 1 || !reflect.DeepEqual(got[0], want) {
		t.Errorf("got %+v", got)
	}
	run, err = client.FanOut(t.Context(), c, a, upTo(2),
		client.Retry(umbel.RetryPolicy{MaxAttempts: 1}), client.StartToClose(0))
	if err != nil {
		t.Fatal(err)
	}
	if got := f.run(run.WorkflowID()).commit.Types[0]; got.Retry.MaxAttempts != 1 || got.StartToClose != 0 {
		t.Errorf("overridden: %+v", got)
	}
}
