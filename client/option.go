package client

import (
	"strconv"
	"time"

	"github.com/umbelhq/umbel"
)

// StartOption changes how a fan-out is started. If one is given twice, the later one holds.
type StartOption interface{ applyStart(*startConfig) }

type startOption func(*startConfig)

func (o startOption) applyStart(c *startConfig) { o(c) }

// WorkflowID names the workflow, uniquely in its namespace: starting the ID again with the same inputs attaches
// to its run. 1 to [umbel.MaxNameBytes] bytes, see [umbel.ValidateName]. Default: a random ID, so that every
// start is a workflow of its own.
func WorkflowID(id umbel.WorkflowID) StartOption {
	return startOption(func(c *startConfig) { c.id, c.named = id, true })
}

// TaskQueue selects the pool of workers for every item that does not name its own. Default, and if name is
// empty: [umbel.DefaultTaskQueue].
func TaskQueue(name string) StartOption {
	return startOption(func(c *startConfig) { c.taskQueue = name })
}

// Node pins every item that does not name its own node to workers that advertise this one. Default, and if
// name is empty: any worker of the pool.
func Node(name string) StartOption { return startOption(func(c *startConfig) { c.node = name }) }

// Retry replaces the retry policy of every activity in this start.
func Retry(p umbel.RetryPolicy) StartOption {
	return startOption(func(c *startConfig) { c.retry = &p })
}

// StartToClose replaces the bound on one attempt of every activity in this start: whole milliseconds up to
// [umbel.MaxDelay], 0 for no bound.
func StartToClose(d time.Duration) StartOption {
	return startOption(func(c *startConfig) { c.startToClose = &d })
}

// StartAfter keeps every row back for so long after the start, on top of its own delay: whole milliseconds,
// together at most [umbel.MaxDelay]. Default 0.
func StartAfter(d time.Duration) StartOption {
	return startOption(func(c *startConfig) { c.startAfter = d })
}

// OnExisting says what a start does when its workflow ID has a run already. It is a [StartOption].
type OnExisting umbel.OnExisting

// The ways to treat a workflow that exists.
const (
	// SameInputs attaches if inputs and options are equal, else the start is [umbel.ErrAlreadyExists] naming
	// the run. The default.
	SameInputs = OnExisting(umbel.SameInputs)
	// Existing attaches without comparing; the inputs are then not read at all.
	Existing = OnExisting(umbel.Existing)
	// Reject refuses with [umbel.ErrAlreadyExists] naming the run.
	Reject = OnExisting(umbel.Reject)
)

func (o OnExisting) applyStart(c *startConfig) { c.onExisting = o }

// startConfig is what the options of a start add up to.
type startConfig struct {
	id           umbel.WorkflowID
	named        bool // by the caller, so it may exist
	taskQueue    string
	node         string
	retry        *umbel.RetryPolicy
	startToClose *time.Duration
	startAfter   time.Duration
	onExisting   OnExisting
	maxRows      int64
	maxBytes     int64
}

// newStartConfig applies opts and reports the first value that breaks a rule.
func newStartConfig(opts []StartOption) (*startConfig, error) {
	c := &startConfig{
		taskQueue: umbel.DefaultTaskQueue,
		maxRows:   umbel.MaxRows,
		maxBytes:  umbel.MaxRunInputBytes,
	}
	none := false
	for _, o := range opts {
		if o == nil {
			none = true
			continue
		}
		o.applyStart(c)
	}
	if !c.named {
		c.id = umbel.WorkflowID(umbel.NewRunID())
	}
	if none {
		return nil, c.annotate(umbel.Invalid("option", "nil", "must be made by this package, such as WorkflowID(id)"))
	}
	if c.taskQueue == "" {
		c.taskQueue = umbel.DefaultTaskQueue
	}
	if err := c.validate(); err != nil {
		return nil, c.annotate(err)
	}
	return c, nil
}

func (c *startConfig) validate() error {
	if err := umbel.ValidateName("workflow ID", string(c.id)); err != nil {
		return err
	}
	if err := umbel.ValidateName("task queue", c.taskQueue); err != nil {
		return err
	}
	if err := umbel.ValidateLabel("node", c.node); err != nil {
		return err
	}
	if err := umbel.ValidateDuration("start-after", c.startAfter, 0, umbel.MaxDelay); err != nil {
		return err
	}
	if c.retry != nil {
		if err := c.retry.Validate(); err != nil {
			return err
		}
	}
	if c.startToClose != nil {
		if err := umbel.ValidateDuration("start-to-close", *c.startToClose, 0, umbel.MaxDelay); err != nil {
			return err
		}
	}
	if c.onExisting < SameInputs || c.onExisting > Reject {
		return umbel.Invalid("on-existing", strconv.Itoa(int(c.onExisting)), "must be SameInputs, Existing or Reject")
	}
	return nil
}

// policy is what holds for the rows of p's type in this start, with every default written out, so that what
// is compared is what is sent.
func (c *startConfig) policy(p umbel.TypePolicy) umbel.TypePolicy {
	if c.retry != nil {
		p.Retry = *c.retry
	}
	if c.startToClose != nil {
		p.StartToClose = *c.startToClose
	}
	p.Retry = p.Retry.WithDefaults()
	return p
}

// annotate completes an error of the vocabulary with whose it is.
func (c *startConfig) annotate(err error) error {
	e, ok := err.(*umbel.Error) //nolint:errorlint // only what this package was just given, nothing wrapped
	if !ok {
		return err
	}
	annotated := *e
	annotated.Op, annotated.WorkflowID = "start", c.id
	return &annotated
}
