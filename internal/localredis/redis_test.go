package localredis_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel/internal/localredis"
)

// openVar makes the test binary a process that opens the directory it names and waits to be killed.
const openVar = "UMBEL_TEST_OPEN"

func TestMain(m *testing.M) {
	dir := os.Getenv(openVar)
	if dir == "" {
		os.Exit(m.Run())
	}
	s, err := localredis.Open(context.Background(), dir)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("open")
	<-s.Done()
}

func open(t *testing.T, dir string) *localredis.Server {
	t.Helper()
	s, err := localredis.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func set(t *testing.T, s *localredis.Server, key string) {
	t.Helper()
	if err := s.Client().Set(t.Context(), key, "kept", 0).Err(); err != nil {
		t.Fatal(err)
	}
}

func wantKept(t *testing.T, s *localredis.Server, key string) {
	t.Helper()
	if v, err := s.Client().Get(t.Context(), key).Result(); v != "kept" {
		t.Errorf("%s is %q (%v), want what was written", key, v, err)
	}
}

func TestDataIsKept(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "with \"quotes\" and\nlines")
	s := open(t, dir)
	set(t, s, "a")
	if got := s.Client().ConfigGet(t.Context(), "append*").Val(); got["appendonly"] != "yes" || got["appendfsync"] != "always" {
		t.Errorf("Redis has %v, want appendonly yes, appendfsync always", got)
	}
	s.Close()
	s.Close()
	s = open(t, dir)
	wantKept(t, s, "a")
}

// A path that is too long for a socket takes the socket elsewhere, and leaves nothing there.
func TestLongPath(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir := filepath.Join(t.TempDir(), strings.Repeat("d", 200))
	s := open(t, dir)
	set(t, s, "a")
	s.Close()
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "umbel-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	wantKept(t, open(t, dir), "a")
}

func TestOneProcessADirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	_, err := localredis.Open(t.Context(), dir)
	want := fmt.Sprintf("the data directory %s is in use by another umbel (process %d): end that one first, or give another directory", dir, os.Getpid())
	if err == nil || err.Error() != want {
		t.Errorf("a second Open returned %v, want %s", err, want)
	}
	set(t, s, "a") // the first is not disturbed
}

func TestNoRedisServer(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := localredis.Open(t.Context(), t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "no redis-server on PATH") || !strings.Contains(err.Error(), "leave --data out") {
		t.Errorf("without redis-server Open returned %v", err)
	}
}

func TestRedisThatCannotStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "appendonlydir"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := localredis.Open(t.Context(), dir)
	if err == nil || !strings.Contains(err.Error(), "redis-server ended while it started") {
		t.Errorf("Open returned %v", err)
	}
}

// Done tells that somebody else ended Redis.
func TestDone(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	_ = s.Client().ShutdownNoSave(t.Context())
	<-s.Done()
	if err := s.Err(); !strings.Contains(err.Error(), "has ended") {
		t.Error(err)
	}
}

// A redis-server that was left behind is ended before another opens the same data.
func TestRedisLeftBehind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	left := open(t, dir)
	set(t, left, "a")
	left.Abandon()
	s := open(t, dir)
	wantKept(t, s, "a")
	select {
	case <-left.Done():
	default:
		t.Error("the Redis that was left behind still runs")
	}
}

// A process that is killed leaves its directory to the next one, with all that was acknowledged.
func TestKilledProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 3 {
		key := fmt.Sprint("key", i)
		cmd, stdout := openElsewhere(t, dir)
		s := dial(t, dir)
		if err := s.Set(t.Context(), key, "kept", 0).Err(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_, _ = bufio.NewReader(stdout).ReadString(0)
		_ = cmd.Wait()

		next := open(t, dir)
		wantKept(t, next, key)
		next.Close()
	}
}

func openElsewhere(t *testing.T, dir string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), openVar+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stdout := bufio.NewReader(out)
	if line, err := stdout.ReadString('\n'); line != "open\n" {
		t.Fatalf("the process said %q (%v)", line, err)
	}
	return cmd, stdout
}

// dial returns a client of the Redis that serves dir.
func dial(t *testing.T, dir string) *redis.Client {
	t.Helper()
	socket, err := os.ReadFile(filepath.Join(dir, "socket.path"))
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(&redis.Options{Network: "unix", Addr: string(socket)})
	t.Cleanup(func() { _ = c.Close() })
	return c
}
