package check

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// scriptNames returns the name of each script by its hash.
func scriptNames(t *testing.T) map[string]string {
	t.Helper()
	const dir = "../../internal/lua/"
	shared, err := os.ReadFile(dir + "shared.lua")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(dir + "*.lua")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for _, f := range files {
		body, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		names[redis.NewScript(string(shared)+string(body)).Hash()] = strings.TrimSuffix(filepath.Base(f), ".lua")
	}
	return names
}

// link is a server's way to Redis. It sets Redis's clock, counts what scripts say, and has the faults.
type link struct {
	w *world

	mu    sync.Mutex
	conns []net.Conn
	away  time.Time
	dead  bool
}

func (l *link) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if err := l.before(); err != nil {
			return nil, err
		}
		c, err := next(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.conns = append(l.conns, c)
		return wire{c}, nil
	}
}

func (l *link) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := l.before(); err != nil {
			cmd.SetErr(err)
			return err
		}
		err := next(ctx, cmd)
		if e := l.after(cmd); e != nil {
			return e
		}
		return err
	}
}

func (l *link) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if err := l.before(); err != nil {
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
			return err
		}
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			if e := l.after(cmd); e != nil {
				err = e
			}
		}
		return err
	}
}

// before refuses commands of who is cut off.
func (l *link) before() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return redis.ErrClosed
	}
	if time.Now().Before(l.away) {
		return io.EOF
	}
	l.w.setClock()
	return nil
}

// after counts the reply of a command, and loses it if that is due.
func (l *link) after(cmd redis.Cmder) error {
	name, what := strings.ToLower(cmd.Name()), "other"
	args := cmd.Args()
	if strings.HasPrefix(name, "eval") && len(args) > 1 {
		hash, _ := args[1].(string)
		if name == "eval" {
			hash = redis.NewScript(hash).Hash()
		}
		what = l.w.scripts[hash]
		if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
			l.w.tally.add("script", what, "NOSCRIPT")
		}
		if c, ok := cmd.(*redis.Cmd); ok && cmd.Err() == nil {
			l.w.outcome(what, c.Val())
		}
	}
	if cmd.Err() == nil && name != "hello" && l.w.take(loseRedisReply, what) {
		cmd.SetErr(io.EOF)
		return io.EOF
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead { // it has no more use of the reply
		cmd.SetErr(redis.ErrClosed)
		return redis.ErrClosed
	}
	return nil
}

// outcome counts the words of a script's reply.
func (w *world) outcome(script string, v any) {
	vals, _ := v.([]any)
	if len(vals) == 0 {
		return
	}
	word, _ := vals[0].(string)
	w.tally.add("script", script, word)
	switch script + " " + word {
	case "settle ok":
		status, _ := vals[1].(string)
		w.tally.add("script", script, word, status)
		for _, v := range vals[min(3, len(vals)):] {
			if item, _ := v.([]any); len(item) > 2 {
				code, _ := item[2].(string)
				w.tally.add("script settle item", code)
			}
		}
	case "renew ok":
		for _, v := range vals[1:] {
			states, _ := v.(string)
			for _, s := range states {
				w.tally.add("script renew row", string(s))
			}
		}
	}
}

func (l *link) cut() {
	l.mu.Lock()
	conns := l.conns
	l.conns = nil
	l.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
}

func (l *link) die() {
	l.mu.Lock()
	l.dead = true
	l.mu.Unlock()
	l.cut()
}

func (l *link) leave(d time.Duration) {
	l.mu.Lock()
	l.away = time.Now().Add(d)
	l.mu.Unlock()
	l.cut()
}
