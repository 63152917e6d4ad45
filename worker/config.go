package worker

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/umbelhq/umbel"
)

// DefaultConcurrency is the number of slots of a worker that does not say otherwise: enough to make the
// batches large that polls and reports travel in, few enough not to surprise what handlers call.
const DefaultConcurrency = 100

// DefaultGrace is how long a stopping worker waits for its handlers. With [abandonAfter] and [flushTimeout] it
// stays below the 30 s after which Kubernetes and systemd's common settings kill.
const DefaultGrace = 15 * time.Second

// Config says what a [Worker] does. The zero value is a worker on the default task queue of the default
// namespace.
type Config struct {
	// Namespace is where the worker takes rows from. Default [umbel.DefaultNamespace].
	Namespace string

	// TaskQueue is the task queue that the worker serves. Default [umbel.DefaultTaskQueue].
	TaskQueue string

	// Node is what the worker advertises: it is handed the rows that are pinned to it, besides those that are
	// pinned to none. Empty, the default: only rows that are pinned to none.
	Node string

	// Concurrency is the number of slots: how many handlers run at once, all types together. Default 0:
	// [DefaultConcurrency]. From 1 to [umbel.MaxConcurrency].
	Concurrency int

	// Grace is how long handlers and reports may take after the context of Run has ended, before the contexts of
	// the handlers that still run end with [umbel.ErrWorkerStopping]. Default 0: [DefaultGrace]. Up to
	// [umbel.MaxDelay]. [Worker.Stop] does not wait.
	Grace time.Duration

	// PollWait is how long a poll is held open while there is nothing to do. Default 0: [umbel.MaxPollWait].
	// Whole milliseconds from 1 ms to [umbel.MaxPollWait]; make it shorter where a proxy cuts silent connections.
	PollWait time.Duration

	// MaxSilence is how long a row's renewals may go unanswered before its handler's context ends with
	// [umbel.ErrLeaseLost], since another worker may have the row by then. From [umbel.MinLease] to
	// [umbel.MaxDelay]. Default 0: for ever, only the server's word ends a handler. After an outage of server or
	// Redis nothing then runs twice; a worker that alone is cut off runs its rows beside the worker that takes them
	// over. Set it to the lease where running beside another does harm.
	MaxSilence time.Duration

	// Identity names this incarnation of the worker in history and to people. Default: host name, process ID and
	// a random part. Two workers that run at the same time must not share one.
	Identity string

	// Logger gets what the worker has to say: a line at info for each failed attempt, at warn for a panic and for
	// what keeps the worker from its server. Default nil: slog.Default().
	Logger *slog.Logger

	// Interceptors wrap every handler, the first one outermost. They see payloads: a typed handler decodes its
	// input and encodes its result inside of them.
	Interceptors []umbel.Interceptor
}

func (c Config) withDefaults() Config {
	if c.Namespace == "" {
		c.Namespace = umbel.DefaultNamespace
	}
	if c.TaskQueue == "" {
		c.TaskQueue = umbel.DefaultTaskQueue
	}
	if c.Concurrency == 0 {
		c.Concurrency = DefaultConcurrency
	}
	if c.Grace == 0 {
		c.Grace = DefaultGrace
	}
	if c.PollWait == 0 {
		c.PollWait = umbel.MaxPollWait
	}
	if c.Identity == "" {
		c.Identity = newIdentity()
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// validate returns every problem of c, defaults applied.
func (c Config) validate() error {
	errs := []error{
		umbel.ValidateName("namespace", c.Namespace),
		umbel.ValidateName("task queue", c.TaskQueue),
		umbel.ValidateLabel("node", c.Node),
		umbel.ValidateName("identity", c.Identity),
		umbel.ValidateDuration("poll wait", c.PollWait, time.Millisecond, umbel.MaxPollWait),
		within("grace", c.Grace, 1, umbel.MaxDelay),
	}
	if c.Concurrency < 1 || c.Concurrency > umbel.MaxConcurrency {
		errs = append(errs, umbel.Invalid("concurrency", strconv.Itoa(c.Concurrency),
			fmt.Sprintf("must be from 1 to %d, or 0 for the default of %d", umbel.MaxConcurrency, DefaultConcurrency)))
	}
	if c.MaxSilence != 0 {
		errs = append(errs, within("max silence", c.MaxSilence, umbel.MinLease, umbel.MaxDelay))
	}
	for i, ic := range c.Interceptors {
		if ic == nil {
			errs = append(errs, umbel.Invalid("interceptor", strconv.Itoa(i), "must not be nil"))
		}
	}
	return errors.Join(errs...)
}

// within is for durations that stay in this process and need not be whole milliseconds.
func within(field string, d, least, most time.Duration) error {
	if d < least || d > most {
		return umbel.Invalid(field, d.String(), fmt.Sprintf("must be from %v to %v", least, most))
	}
	return nil
}

// newIdentity is host-pid-random, a valid name whatever the host is called.
func newIdentity() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown"
	}
	host = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(host, ""))
	tail := "-" + strconv.Itoa(os.Getpid()) + "-" + strings.ToLower(rand.Text()[:10])
	if most := umbel.MaxNameBytes - len(tail); len(host) > most {
		host = strings.ToValidUTF8(host[:most], "")
	}
	return host + tail
}
