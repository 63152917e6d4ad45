//go:build unix && !linux

package process

import "syscall"

// dieWithParent does nothing: this system cannot.
func dieWithParent(*syscall.SysProcAttr, syscall.Signal) {}
