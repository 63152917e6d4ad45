package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// patience is how long a process may take to end: more than any does, even on a busy machine.
const patience = time.Minute

// process is this binary in a role. It ends when stdin is closed.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr bytes.Buffer
}

// launch starts a process in a role. Who calls it calls end.
func launch(tb testing.TB, role string, args ...string) *process {
	tb.Helper()
	p := &process{cmd: exec.Command(os.Args[0], args...)}
	p.cmd.Env = append(os.Environ(), roleVar+"="+role)
	p.cmd.Stderr = &p.stderr
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	p.stdin, p.stdout = stdin, bufio.NewReader(stdout)
	if err := p.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	return p
}

// line returns the next line that the process prints.
func (p *process) line(tb testing.TB) string {
	tb.Helper()
	line, err := p.stdout.ReadString('\n')
	if err != nil {
		err = errors.Join(err, p.stop())
		tb.Fatalf("%s says nothing: %v\n%s", p.role(), err, p.stderr.String())
	}
	return strings.TrimSpace(line)
}

// cpu returns the seconds of processor time that the process has used.
func (p *process) cpu(tb testing.TB) float64 {
	tb.Helper()
	if _, err := io.WriteString(p.stdin, "cpu\n"); err != nil {
		tb.Fatal(err)
	}
	seconds, err := strconv.ParseFloat(p.line(tb), 64)
	if err != nil {
		tb.Fatal(err)
	}
	return seconds
}

func (p *process) role() string {
	role, _ := strings.CutPrefix(p.cmd.Env[len(p.cmd.Env)-1], roleVar+"=")
	return role
}

// end ends the process, and fails the test unless it ended well.
func (p *process) end(tb testing.TB) {
	tb.Helper()
	if err := p.stop(); err != nil {
		tb.Errorf("%s: %v\n%s", p.role(), err, p.stderr.String())
	}
}

func (p *process) stop() error {
	p.stdin.Close()
	late := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	return p.cmd.Wait()
}

// measure lets a process do a task of n rows.
func measure(tb testing.TB, role, url, task string, n int) (f found) {
	tb.Helper()
	p := launch(tb, role, url, task, strconv.Itoa(n))
	line := p.line(tb)
	p.end(tb)
	if err := json.Unmarshal([]byte(line), &f); err != nil {
		tb.Fatalf("%s of %s: %q: %v", task, role, line, err)
	}
	return f
}
