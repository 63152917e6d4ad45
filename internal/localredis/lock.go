package localredis

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Two locks, each of which the kernel releases with the last process that has it open. This process holds one. The
// other is held by redis-server, so that one that outlives a killed umbel is noticed whatever else can be said
// about it.

// acquire makes the directory this process's.
func (s *Server) acquire() (*os.File, error) {
	f, err := os.OpenFile(s.path(ownerLock), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	free, err := tryLock(f)
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: %w", s.dir, err)
	}
	if !free {
		defer func() { _ = f.Close() }()
		return nil, fmt.Errorf("the data directory %s is in use by another umbel%s: end that one first, or give another directory",
			s.dir, ownerOf(f))
	}
	if err := f.Truncate(0); err == nil { // the process ID is for people
		_, _ = f.WriteString(strconv.Itoa(os.Getpid()) + "\n")
	}
	return f, nil
}

// ownerOf says which process holds a lock, if it has said so.
func ownerOf(f *os.File) string {
	b, err := io.ReadAll(io.LimitReader(f, 32))
	pid := strings.TrimSpace(string(b))
	if _, numeric := strconv.Atoi(pid); err != nil || numeric != nil {
		return ""
	}
	return " (process " + pid + ")"
}

// inherit returns the lock that redis-server is to hold. A redis-server that still holds it has lost its umbel: on
// Linux it is about to end anyway. It is shut down, not taken over, so that there is one way in which data is
// opened.
func (s *Server) inherit(ctx context.Context) (*os.File, error) {
	f, err := os.OpenFile(s.path(serverLock), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	asked := false
	wait, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		free, err := tryLock(f)
		if err == nil && free {
			return f, nil
		}
		if err == nil && !asked {
			asked = true
			s.shutDown(wait)
		}
		select {
		case <-wait.Done():
			if err = context.Cause(ctx); err != nil {
				break
			}
			err = fmt.Errorf("a redis-server that was started before still uses %s and does not end: end it, then try again", s.dir)
		case <-poll.C:
		}
		if err != nil {
			_ = f.Close()
			return nil, err
		}
	}
}

// shutDown asks the last redis-server of the directory to end.
func (s *Server) shutDown(ctx context.Context) {
	socket, ok := lastSocket(s.dir)
	if !ok || !listening(socket) {
		return
	}
	c := redis.NewClient(&redis.Options{Network: "unix", Addr: socket, MaxRetries: -1})
	defer func() { _ = c.Close() }()
	_ = c.ShutdownNoSave(ctx).Err() // the lock tells whether it ended
}
