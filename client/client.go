package client

import (
	"log/slog"

	"github.com/umbelhq/umbel"
)

// Engine is what a client needs of a server.
type Engine interface {
	umbel.Starter
	umbel.Gatherer
	umbel.Operator
}

// Config configures a [Client]. The zero Config is ready to use.
type Config struct {
	// Namespace isolates workflows from those of other namespaces. Default [umbel.DefaultNamespace].
	Namespace string
	// Logger is told of calls that failed twice because the server is unavailable, and are repeated. Default
	// slog.Default().
	Logger *slog.Logger
}

// Client starts fan-outs in one namespace. It holds no connection and no goroutine of its own, and is safe
// for concurrent use.
type Client struct {
	engine    Engine
	namespace string
	log       *slog.Logger
}

// New returns a client of e. It makes no call. The error has [umbel.CodeInvalid] and names the value and the
// rule that it breaks.
func New(e Engine, cfg Config) (*Client, error) {
	if e == nil {
		return nil, umbel.Invalid("engine", "nil", "must not be nil: pass what server.Open returns")
	}
	c := &Client{engine: e, namespace: cfg.Namespace, log: cfg.Logger}
	if c.namespace == "" {
		c.namespace = umbel.DefaultNamespace
	}
	if err := umbel.ValidateName("namespace", c.namespace); err != nil {
		return nil, err
	}
	if c.log == nil {
		c.log = slog.Default()
	}
	return c, nil
}
