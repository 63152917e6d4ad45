package newcomer

import (
	"os/exec"
	"syscall"
	"testing"
	"time"
)

func TestMustShow10NewcomerKill(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bash", "git", "go", "redis-server"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Fatalf("this test needs %s: run scripts/need-redis and scripts/need-tools, which install what is missing or say how (%v)", name, err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "../newcomer.sh")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that it ends what it has started, even if this test is out of time
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
