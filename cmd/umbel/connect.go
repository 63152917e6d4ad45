package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
)

const (
	// reachFor is how long a command looks for a server before it says that there is none: a restart behind one
	// address may take a moment.
	reachFor   = 3 * time.Second
	reachPause = 100 * time.Millisecond
)

// dial returns a connection to the servers that flags or environment name. It makes no call.
func (a *app) dial() (*client.Conn, error) {
	addrs, _ := a.addresses()
	conn, err := client.Dial(addrs)
	if e, ok := errors.AsType[*umbel.Error](err); ok {
		source := "$" + addrVar
		if a.addr != "" {
			source = "--addr"
		}
		return nil, usagef("%s: address %s %s", source, e.Value, e.Reason)
	}
	return conn, err
}

// connect is dial, and returns once a server has answered.
func (a *app) connect(ctx context.Context) (*client.Conn, error) {
	conn, err := a.dial()
	if err != nil {
		return nil, err
	}
	if err := a.reach(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// reach returns nil once a server answers, whatever it says.
func (a *app) reach(ctx context.Context, conn *client.Conn) error {
	wait, cancel := context.WithTimeout(ctx, reachFor)
	defer cancel()
	for {
		_, err := conn.Describe(wait, umbel.DescribeRequest{Namespace: a.namespace, WorkflowID: "is anybody there"})
		switch umbel.CodeOf(err) {
		case umbel.CodeUnavailable:
		case umbel.CodeUnsupported:
			return err
		default:
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-wait.Done():
			return a.unreachable(err)
		case <-time.After(reachPause):
		}
	}
}

// unreachable says that there is no server, and how to get one.
func (a *app) unreachable(err error) error {
	addrs, _ := a.addresses()
	if errors.Is(err, context.DeadlineExceeded) {
		return &hintError{fmt.Sprintf("no server at %s answers within %v: does its Redis answer it?\n  or say where another is with --addr or $%s", addrs, reachFor, addrVar), err}
	}
	return &hintError{fmt.Sprintf("no server answers at %s: start one with: umbel dev\n  or say where one is with --addr or $%s", addrs, addrVar), err}
}

// connectAdmin is connect for commands that only look and ask.
func (a *app) connectAdmin(cmd *cobra.Command) (*client.Admin, func(), error) {
	conn, err := a.connect(cmd.Context())
	if err != nil {
		return nil, nil, err
	}
	log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelError}))
	admin, err := a.admin(conn, log)
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	return admin, func() { _ = conn.Close() }, nil
}

// message is what a person is told of an error.
func message(err error) string {
	text := strings.TrimPrefix(err.Error(), "umbel: ")
	if isHint(err) {
		return text
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		return text
	}
	switch umbel.CodeOf(err) {
	case umbel.CodeNotFound:
		return text + " (umbel list shows what there is)"
	case umbel.CodeUnavailable:
		return text + "\n  is the server up, and its Redis? start one with: umbel dev"
	default:
		return text
	}
}

// quoteArg writes s as a shell takes it as one argument.
func quoteArg(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@%+=,", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) && s[0] != '-' {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// detached is err, or if a signal ended the command what goes on without it.
func detached(ctx context.Context, err error, format string, args ...any) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	return &hintError{fmt.Sprintf(format, args...), err}
}
