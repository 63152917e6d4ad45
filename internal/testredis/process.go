package testredis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// Ports below those that systems hand to outgoing connections, so that a
	// restart finds its port free. The cluster bus takes the port busOffset
	// above, which Redis fixes.
	firstPort, lastPort = 11_000, 21_999
	busOffset           = 10_000

	// startTries bounds how often a start goes on to another port because
	// somebody took the one that had been free.
	startTries = 20

	// startTimeout is generous: a busy machine, or an AOF to load.
	startTimeout = 60 * time.Second
	pollEvery    = 5 * time.Millisecond
)

// process is one redis-server with its own directory and port. It may be
// killed and started again on both.
type process struct {
	port    int
	dir     string
	admin   *redis.Client
	janitor *janitor

	cmd  *exec.Cmd
	gone chan struct{} // closed once cmd has been waited for
}

// launch starts a redis-server on a free port with these directives.
func launch(ctx context.Context, directives map[string]string) (*process, error) {
	bin, err := binary()
	if err != nil {
		return nil, err
	}
	for range startTries - 1 {
		p, err := launchOn(ctx, bin, freePort(), directives)
		if !errors.Is(err, errPortTaken) {
			return p, err
		}
	}
	return launchOn(ctx, bin, freePort(), directives)
}

func launchOn(ctx context.Context, bin string, port int, directives map[string]string) (*process, error) {
	dir, err := os.MkdirTemp("", "umbel-testredis-")
	if err != nil {
		return nil, fmt.Errorf("testredis: %w", err)
	}
	j, err := newJanitor(dir)
	if err != nil {
		return nil, err
	}
	p := &process{port: port, dir: dir, janitor: j, admin: newClient(loopback(port))}
	if err := os.WriteFile(p.path("redis.conf"), []byte(p.config(directives)), 0o600); err != nil {
		p.close()
		return nil, fmt.Errorf("testredis: %w", err)
	}
	if err := p.start(ctx, bin); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *process) config(directives map[string]string) string {
	all := map[string]string{
		"port":             strconv.Itoa(p.port),
		"bind":             "127.0.0.1",
		"dir":              strconv.Quote(p.dir),
		"save":             `""`,
		"appendonly":       "no",
		"daemonize":        "no",
		"always-show-logo": "no",
	}
	maps.Copy(all, directives)
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "%s %s\n", name, all[name])
	}
	return b.String()
}

var errPortTaken = errors.New("testredis: somebody else took the port")

// start runs the server and returns once it answers, its data loaded.
func (p *process) start(ctx context.Context, bin string) error {
	log, err := os.OpenFile(p.path("redis.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("testredis: %w", err)
	}
	defer func() { _ = log.Close() }() // the child has its own copy

	// Not CommandContext: the server outlives the call that starts it.
	cmd := exec.Command(bin, p.path("redis.conf")) //nolint:gosec,noctx // a test chooses its own server
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("testredis: start %s: %w", bin, err)
	}
	gone := make(chan struct{})
	p.cmd, p.gone = cmd, gone
	p.janitor.watch(cmd.Process.Pid)
	go func() {
		defer close(gone)
		_ = cmd.Wait() // a killed server is no error here
	}()
	return p.ready(ctx)
}

func (p *process) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		select {
		case <-p.gone:
			log := p.logTail()
			if strings.Contains(log, "Address already in use") {
				return errPortTaken
			}
			return fmt.Errorf("testredis: redis-server ended while starting:\n%s", log)
		case <-ctx.Done():
			return fmt.Errorf("testredis: redis-server on port %d is not ready: %w\n%s", p.port, ctx.Err(), p.logTail())
		case <-poll.C:
		}
		// go-redis would spend half a second on its own retries, and log them.
		if !isOpen(p.port) {
			continue
		}
		text, err := p.admin.Info(ctx).Result()
		if err != nil || infoField(text, "loading") != "0" {
			continue
		}
		if infoField(text, "process_id") == strconv.Itoa(p.cmd.Process.Pid) {
			return nil
		}
		// Else another process's server answers here and ours is about to fail.
	}
}

// kill ends the server as kill -9 does and waits until it is gone.
func (p *process) kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill() // fails only when it is gone already
	<-p.gone
	p.janitor.watch(0)
	p.cmd = nil
}

// close ends the server and removes its directory.
func (p *process) close() {
	_ = p.admin.Close()
	p.kill()
	p.janitor.close()
}

func (p *process) addr() string            { return loopback(p.port) }
func (p *process) path(name string) string { return filepath.Join(p.dir, name) }

// logTail returns the end of the server's log, for the message of a failure.
func (p *process) logTail() string {
	const lines = 20
	b, err := os.ReadFile(p.path("redis.log"))
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// freePort returns a port that is free at this moment, as is its bus port. Two
// test binaries may be told the same one: start notices.
func freePort() int {
	for {
		port := firstPort + rand.IntN(lastPort-firstPort+1) //nolint:gosec // no secret
		if isFree(port) && isFree(port+busOffset) {
			return port
		}
	}
}

func isFree(port int) bool {
	l, err := net.Listen("tcp", loopback(port)) //nolint:noctx // binds at once
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// isOpen says whether somebody listens. Unlike isFree it never holds the port.
func isOpen(port int) bool {
	conn, err := net.DialTimeout("tcp", loopback(port), time.Second) //nolint:noctx // loopback answers at once
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
