package umbeltest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/umbeltest"
	"github.com/umbelhq/umbel/worker"
)

var Greet = umbel.Define[string, string]("greet", umbel.StartToClose(time.Minute))

func greet(ctx context.Context, name string) (string, error) {
	if name == "" {
		return "", umbel.NonRetryable(errors.New("nobody to greet"))
	}
	return fmt.Sprintf("hello %s, attempt %d", name, worker.Info(ctx).Attempt), context.Cause(ctx)
}

// Client, server and worker in one test, in real time.
func ExampleNew() {
	t, end := testT() // in a test, its T
	defer end()

	env := umbeltest.New(t)
	w := env.Worker(worker.Config{})
	worker.Handle(w, Greet, greet)
	env.Go(w)

	run, err := client.FanOut(t.Context(), env.Client(), Greet, slices.Values([]string{"you", "all"}))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(run.Gather(t.Context()))
	// Output: [hello you, attempt 1 hello all, attempt 1] <nil>
}

// One attempt of a handler, with no server. What a worker would report as a failure is the error.
func ExampleDo() {
	t, end := testT() // in a test, its T
	defer end()

	fmt.Println(umbeltest.Do(t, Greet, greet, "you", umbeltest.Attempt{Info: umbel.Info{Attempt: 2}}))

	_, err := umbeltest.Do(t, Greet, greet, "", umbeltest.Attempt{})
	if failure, ok := errors.AsType[*umbel.Failure](err); ok {
		fmt.Println(failure.Message, failure.NonRetryable)
	}
	// Output:
	// hello you, attempt 2 <nil>
	// nobody to greet true
}

// A handler called as what it is, a function, with a context that is cancelled as a worker would.
func ExampleContext() {
	t, end := testT() // in a test, its T
	defer end()

	ctx, cancel := context.WithCancelCause(umbeltest.Context(t, umbeltest.Attempt{}))
	cancel(umbel.ErrCancelled)
	_, err := greet(ctx, "you")
	fmt.Println(err)
	// Output: umbel: cancelled
}

// The package's documentation quotes this test.
func TestWorkerDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := umbeltest.New(t)
		first, second := env.Worker(worker.Config{}), env.Worker(worker.Config{})
		worker.Handle(first, Greet, func(context.Context, string) (string, error) {
			env.Kill(first)
			return "from the grave", nil
		})
		worker.Handle(second, Greet, greet)
		env.Go(first)
		run, err := client.FanOut(t.Context(), env.Client(), Greet, slices.Values([]string{"you"}))
		if err != nil {
			t.Fatal(err)
		}
		env.Advance(time.Second)
		env.Go(second)
		got, err := run.Gather(t.Context())
		if err != nil || got[0] != "hello you, attempt 2" {
			t.Fatal(got, err)
		}
	})
}

func TestDocumentationQuotesATest(t *testing.T) {
	t.Parallel()
	for _, quote := range []struct{ page, prefix string }{{"doc.go", "//\t"}, {"../docs/testing.md", ""}} {
		page, err := os.ReadFile(quote.page)
		if err != nil {
			t.Fatal(err)
		}
		source, err := os.ReadFile("example_test.go")
		if err != nil {
			t.Fatal(err)
		}
		_, test, _ := strings.Cut(string(source), "\nfunc TestWorkerDies")
		test, _, _ = strings.Cut(test, "\n}\n")
		want := quote.prefix + strings.ReplaceAll("func TestWorkerDies"+test+"\n}\n", "\n", "\n"+quote.prefix)
		if !strings.Contains(string(page), strings.TrimSuffix(want, quote.prefix)) {
			t.Errorf("%s does not quote TestWorkerDies as it is:\n%s", quote.page, want)
		}
	}
}
