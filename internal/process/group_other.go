//go:build !unix

package process

import (
	"os/exec"
	"syscall"
)

func attach(*exec.Cmd, syscall.Signal) {}

// signal knows one way to end a program here.
func signal(cmd *exec.Cmd, _ syscall.Signal) { _ = cmd.Process.Kill() }
