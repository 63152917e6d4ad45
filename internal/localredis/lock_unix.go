//go:build unix

package localredis

import (
	"errors"
	"os"
	"syscall"
)

// tryLock takes the lock of f for this process and those that inherit f; false if others hold it.
func tryLock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}
