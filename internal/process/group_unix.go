//go:build unix

package process

import (
	"os/exec"
	"syscall"
)

func attach(cmd *exec.Cmd, orphaned syscall.Signal) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr, orphaned)
}

// signal fails only when nobody is left in the group.
func signal(cmd *exec.Cmd, sig syscall.Signal) { _ = syscall.Kill(-cmd.Process.Pid, sig) }
