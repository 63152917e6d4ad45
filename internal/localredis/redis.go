// Package localredis runs the redis-server that is installed on this machine, with its data in a directory, for one
// process: for `umbel dev --data` and `umbel run --data`. What Redis has acknowledged survives a crash of the
// process, of Redis and of the machine: it writes an append-only file and syncs it with every command.
//
// Redis listens on no port. It answers on a Unix socket that only this user can open.
package localredis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel/internal/process"
)

// The files in the directory, besides the append-only file.
const (
	ownerLock  = "umbel.lock"  // held by the umbel process that uses the directory
	serverLock = "redis.lock"  // held by redis-server and what it forks, so that no two write one file
	logFile    = "redis.log"   // what redis-server says, since its last start
	socketNote = "socket.path" // where the socket is
	socketName = "redis.sock"
)

const (
	pollEvery = 5 * time.Millisecond
	// stopTimeout is how long a redis-server may take to end. It has nothing left to write then.
	stopTimeout = 30 * time.Second
	// maxSocketPath is below what the strictest system allows, 103 bytes.
	maxSocketPath = 100
)

// Server is a redis-server with its data in a directory.
type Server struct {
	dir    string
	socket string
	lock   *os.File // ownerLock
	child  *process.Process
	client *redis.Client
}

// Open starts the redis-server on PATH with its data in dir, which is made if it is not there, and returns once
// Redis has read its data and answers. It ends with ctx until then, not afterwards; call [Server.Close].
//
// One process at a time uses a directory: for a second one Open returns an error that says so. A redis-server
// that was left behind there by a process that was killed is shut down first. Without a redis-server on PATH the
// error says how to get one.
func Open(ctx context.Context, dir string) (*Server, error) {
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, errors.New("there is no redis-server on PATH to keep data with: install Redis 6.2 or newer " +
			"(apt-get install redis-server, brew install redis), or leave --data out to keep everything in memory")
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	s := &Server{dir: dir}
	if s.lock, err = s.acquire(); err != nil {
		return nil, err
	}
	if err := s.launch(ctx, bin); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// launch starts Redis in the directory, which is this process's, and waits until it answers.
func (s *Server) launch(ctx context.Context, bin string) error {
	mine, err := s.inherit(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = mine.Close() }() // Redis has its own copy, and with it the lock
	if s.socket, err = newSocket(s.dir); err != nil {
		return err
	}
	log, err := os.OpenFile(s.path(logFile), os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()

	cmd := exec.Command(bin, "-") //nolint:noctx // found on PATH; it outlives the call that starts it
	cmd.Dir = s.dir
	cmd.Stdin = strings.NewReader(config(s.socket))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{mine}
	if s.child, err = process.Start(cmd, syscall.SIGTERM); err != nil {
		return fmt.Errorf("start %s: %w", bin, err)
	}
	s.client = redis.NewClient(&redis.Options{Network: "unix", Addr: s.socket, ContextTimeoutEnabled: true})
	return s.ready(ctx)
}

// config makes Redis keep what it acknowledges, in its working directory, and listen to this user only.
func config(socket string) string {
	return `port 0
unixsocket ` + quote(socket) + `
unixsocketperm 700
appendonly yes
appendfsync always
save ""
daemonize no
always-show-logo no
`
}

// quote writes s as a quoted argument of Redis's configuration.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ':
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// ready waits until Redis answers, its data loaded.
func (s *Server) ready(ctx context.Context) error {
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		select {
		case <-s.child.Done():
			return fmt.Errorf("redis-server ended while it started in %s:\n%s", s.dir, s.logTail())
		case <-ctx.Done():
			return fmt.Errorf("redis-server in %s is not ready: %w", s.dir, context.Cause(ctx))
		case <-poll.C:
		}
		// Until somebody listens the client would wait and log.
		if listening(s.socket) && s.client.Ping(ctx).Err() == nil {
			return nil
		}
	}
}

func listening(socket string) bool {
	conn, err := net.DialTimeout("unix", socket, time.Second) //nolint:noctx // a socket answers at once
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

// Client returns a client of the server, which Close closes. It is safe for concurrent use.
func (s *Server) Client() redis.UniversalClient { return s.client }

// Done is closed once redis-server has ended, as it does when somebody else ends it.
func (s *Server) Done() <-chan struct{} { return s.child.Done() }

// Err says how redis-server ended, once [Server.Done] is closed.
func (s *Server) Err() error {
	how := "exit status 0"
	if err := s.child.Err(); err != nil {
		how = err.Error()
	}
	return fmt.Errorf("redis-server in %s has ended (%s):\n%s", s.dir, how, s.logTail())
}

// Close ends redis-server, waits until it has ended, and leaves the directory to others. A second Close does
// nothing.
func (s *Server) Close() {
	if s.client != nil {
		_ = s.client.Close()
		s.client = nil
	}
	if s.child != nil {
		s.child.Signal(syscall.SIGTERM)
		select {
		case <-s.child.Done():
		case <-time.After(stopTimeout):
			s.child.Signal(syscall.SIGKILL) // it loses nothing: each command was synced
			<-s.child.Done()
		}
	}
	if s.socket != "" {
		removeSocket(s.dir)
	}
	_ = s.lock.Close() // and with it the lock
}

func (s *Server) path(name string) string { return filepath.Join(s.dir, name) }

// logTail returns the end of Redis's log, for the message of a failure.
func (s *Server) logTail() string {
	const lines = 10
	b, err := os.ReadFile(s.path(logFile))
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
