//go:build !unix

package localredis

import (
	"errors"
	"os"
)

// tryLock refuses: without a lock two processes could write one append-only file.
func tryLock(*os.File) (bool, error) {
	return false, errors.New("this system has no file locks that child processes inherit: use a Redis elsewhere with --redis")
}
