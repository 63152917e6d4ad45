package testredis

import (
	"fmt"
	"os"
	"os/exec"
)

// binaryVar names the environment variable that overrides the redis-server on
// PATH, for a newer Redis or for Valkey.
const binaryVar = "UMBEL_TEST_REDIS_SERVER"

// binary finds the redis-server to test with. Its error is for the reader of a
// failed test and says what to do.
func binary() (string, error) {
	if path := os.Getenv(binaryVar); path != "" {
		found, err := exec.LookPath(path)
		if err != nil {
			return "", fmt.Errorf("testredis: %s does not name a program that can run: %w", binaryVar, err)
		}
		return found, nil
	}
	found, err := exec.LookPath("redis-server")
	if err != nil {
		return "", fmt.Errorf("testredis: this test needs a real Redis and there is none; run `make redis`, "+
			"or set %s=/path/to/redis-server: %w", binaryVar, err)
	}
	return found, nil
}
