//go:build unix

package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/creack/pty"
)

// session is an umbel that a test talks to.
type session struct {
	t     *testing.T
	cmd   *exec.Cmd
	input io.Writer

	mu    sync.Mutex
	wrote sync.Cond
	out   strings.Builder // what it wrote, to both streams
	ended bool
}

func umbelCommand(t *testing.T, args []string, env ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath("umbel")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// background runs umbel without a terminal, on these items.
func background(t *testing.T, items string, args []string, env ...string) *session {
	t.Helper()
	cmd := umbelCommand(t, args, env...)
	cmd.Stdin = strings.NewReader(items)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	return newSession(t, cmd, r)
}

// terminal runs umbel on a terminal of its own.
func terminal(t *testing.T, args []string, env ...string) *session {
	t.Helper()
	cmd := umbelCommand(t, args, env...)
	f, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 120})
	if err != nil {
		t.Fatal(err)
	}
	s := newSession(t, cmd, f)
	s.input = f
	return s
}

func newSession(t *testing.T, cmd *exec.Cmd, r io.ReadCloser) *session {
	t.Helper()
	s := &session{t: t, cmd: cmd}
	s.wrote.L = &s.mu
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 4096)
		for {
			n, err := r.Read(buf)
			s.mu.Lock()
			s.out.Write(buf[:n])
			s.ended = err != nil
			s.mu.Unlock()
			s.wrote.Broadcast()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = r.Close()
		<-done
		if t.Failed() {
			t.Logf("umbel %s wrote:\n%s", strings.Join(cmd.Args[1:], " "), s.output())
		}
	})
	return s
}

func (s *session) output() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()
}

// await returns once text was written.
func (s *session) await(text string) {
	s.t.Helper()
	s.match(regexp.MustCompile(regexp.QuoteMeta(text)))
}

// match waits for what matches and returns the match and its groups.
func (s *session) match(re *regexp.Regexp) []string {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if m := re.FindStringSubmatch(s.out.String()); m != nil {
			return m
		}
		if s.ended {
			s.t.Fatalf("umbel %s ended without saying %s", s.cmd.Args[1], re)
		}
		s.wrote.Wait()
	}
}

func (s *session) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// interrupt does what Ctrl-C on the terminal does. The character itself would also throw away what the terminal has
// not shown yet, which may be the answer.
func (s *session) interrupt() {
	s.t.Helper()
	if err := syscall.Kill(-s.cmd.Process.Pid, syscall.SIGINT); err != nil {
		s.t.Fatal(err)
	}
}

// exits waits for the end and wants this exit code.
func (s *session) exits(want int) string {
	s.t.Helper()
	s.mu.Lock()
	for !s.ended {
		s.wrote.Wait()
	}
	s.mu.Unlock()
	err := s.cmd.Wait()
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	}
	if got != want {
		s.t.Fatalf("umbel %s exits with %d (%v), want %d", s.cmd.Args[1], got, err, want)
	}
	return s.output()
}

// dev starts a server and returns the environment that names it.
func dev(t *testing.T, args ...string) string {
	t.Helper()
	s := background(t, "", append([]string{"dev", "--listen", "127.0.0.1:0"}, args...))
	return servesAt(s)
}

// servesAt is the environment that names a server.
func servesAt(s *session) string {
	s.t.Helper()
	return "UMBEL_ADDR=" + s.match(regexp.MustCompile(`umbel: serving on (http://\S+)\r?\n`))[1]
}

// umbelOutput runs umbel to its end, which must be a good one.
func umbelOutput(t *testing.T, items string, args []string, env ...string) string {
	t.Helper()
	return background(t, items, args, env...).exits(0)
}

// writeFile writes a file into a directory of the test and returns its path.
func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// terminalShell runs a shell on a terminal, which becomes the umbel that the line ends with.
func terminalShell(t *testing.T, line string, env ...string) *session {
	t.Helper()
	cmd := exec.Command("sh", "-c", "exec "+line)
	cmd.Dir = t.TempDir()
	cmd.Env = append(append(os.Environ(), "GORACE=atexit_sleep_ms=0"), env...)
	f, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 120})
	if err != nil {
		t.Fatal(err)
	}
	s := newSession(t, cmd, f)
	s.input = f
	return s
}
