package umbel_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/worker"
)

func ExampleDefine() {
	type Image struct{ URL string }
	type Thumb struct{ Width, Height int }

	thumbnail := umbel.Define[Image, Thumb]("thumbnail",
		umbel.StartToClose(2*time.Minute),
		umbel.Retry(umbel.RetryPolicy{MaxAttempts: 5, NonRetryable: []string{"NotAnImage"}}),
	)
	fmt.Println(thumbnail.Name(), thumbnail.Policy().StartToClose)
	// Output: thumbnail 2m0s
}

// A row that can never succeed fails at once, whatever attempts are left.
func ExampleNonRetryable() {
	charge := umbel.Define[int, string]("charge")
	c, end := serve(charge, func(_ context.Context, cents int) (string, error) {
		if cents < 0 {
			return "", umbel.NonRetryable(errors.New("negative amount"))
		}
		return "charged", nil
	})
	defer end()

	_, err := client.Do(context.Background(), c, charge, -5)
	if failure, ok := errors.AsType[*umbel.Failure](err); ok {
		fmt.Println(failure.Message, "in attempt", failure.Attempt)
	}
	// Output: negative amount in attempt 1
}

// A service says when to come back. The attempt is spent, and the next one starts then.
func ExampleRetryAfter() {
	fetch := umbel.Define[string, string]("fetch")
	c, end := serve(fetch, func(ctx context.Context, url string) (string, error) {
		if worker.Info(ctx).Attempt == 1 {
			return "", umbel.RetryAfter(errors.New("too many requests"), 10*time.Millisecond)
		}
		return "content of " + url, nil
	})
	defer end()

	content, err := client.Do(context.Background(), c, fetch, "a.example")
	fmt.Println(content, err)
	// Output: content of a.example <nil>
}

// A kind of one's own tells failures apart, for people and for the retry policy.
func ExampleTyped() {
	parse := umbel.Define[string, int]("parse",
		umbel.Retry(umbel.RetryPolicy{NonRetryable: []string{"BadRecord"}}))
	c, end := serve(parse, func(_ context.Context, record string) (int, error) {
		return 0, umbel.Typed("BadRecord", fmt.Errorf("no number in %q", record))
	})
	defer end()

	_, err := client.Do(context.Background(), c, parse, "x")
	if failure, ok := errors.AsType[*umbel.Failure](err); ok {
		fmt.Printf("%s: %s\n", failure.Type, failure.Message)
	}
	// Output: BadRecord: no number in "x"
}

// Every error of a call has a code. The sentinels match it; the fields say which value broke which rule.
func ExampleError() {
	greet := umbel.Define[string, string]("greet")
	c, end := serve(greet, func(_ context.Context, name string) (string, error) { return "hi " + name, nil })
	defer end()

	_, err := client.Do(context.Background(), c, greet, "Ada", client.TaskQueue("bad\nname"))
	fmt.Println(errors.Is(err, umbel.ErrInvalid))
	if e, ok := errors.AsType[*umbel.Error](err); ok {
		fmt.Println(e.Field, e.Value, e.Reason)
	}
	// Output:
	// true
	// task queue "bad\nname" must not contain control characters
}
