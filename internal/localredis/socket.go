package localredis

import (
	"fmt"
	"os"
	"path/filepath"
)

// newSocket returns where Redis is to listen: in dir, or where that path would be too long for a socket in a
// directory for temporary files, which only this user can enter. It is written down in dir.
func newSocket(dir string) (string, error) {
	removeSocket(dir)
	socket := filepath.Join(dir, socketName)
	if len(socket) > maxSocketPath {
		temp, err := os.MkdirTemp("", "umbel-")
		if err != nil {
			return "", err
		}
		socket = filepath.Join(temp, socketName)
	}
	if len(socket) > maxSocketPath {
		_ = os.Remove(filepath.Dir(socket))
		return "", fmt.Errorf("both %s and the directory for temporary files have paths too long for a socket: give a shorter one", dir)
	}
	return socket, os.WriteFile(filepath.Join(dir, socketNote), []byte(socket), 0o600)
}

// lastSocket returns where the last Redis of dir listens, or listened.
func lastSocket(dir string) (string, bool) {
	b, err := os.ReadFile(filepath.Join(dir, socketNote)) //nolint:gosec // the user's own directory
	return string(b), err == nil && filepath.Base(string(b)) == socketName
}

// removeSocket removes what newSocket made.
func removeSocket(dir string) {
	socket, ok := lastSocket(dir)
	if !ok {
		return
	}
	_ = os.Remove(socket) // Redis has removed it, unless it was killed
	if temp := filepath.Dir(socket); temp != dir {
		_ = os.Remove(temp) // only if it is empty
	}
	_ = os.Remove(filepath.Join(dir, socketNote))
}
