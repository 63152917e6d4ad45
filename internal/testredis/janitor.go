package testredis

import (
	"fmt"
	"io"
	"os/exec"
)

// janitorScript reads process ids from its standard input, the last of which is
// alive. The input ends when the test binary does, however it ends: by return,
// by panic, by go test's timeout, by kill -9. Then it kills that process and
// removes the directory. It ignores Ctrl-C, which reaches it too.
const janitorScript = `trap '' INT TERM HUP
pid=0
while read -r next; do pid=$next; done
[ "$pid" -eq 0 ] || kill -9 "$pid" 2>/dev/null
rm -rf "$1"`

// janitor cleans up after one redis-server, also when this process cannot.
type janitor struct {
	cmd  *exec.Cmd
	pids io.WriteCloser
}

func newJanitor(dir string) (*janitor, error) {
	cmd := exec.Command("sh", "-c", janitorScript, "janitor", dir) //nolint:gosec,noctx // it outlives the call
	pids, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("testredis: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("testredis: start the janitor: %w", err)
	}
	return &janitor{cmd: cmd, pids: pids}, nil
}

// watch names the process to kill, 0 for none.
func (j *janitor) watch(pid int) { _, _ = fmt.Fprintln(j.pids, pid) }

// close has the janitor clean up now, and waits for it.
func (j *janitor) close() {
	_ = j.pids.Close()
	_ = j.cmd.Wait()
}
