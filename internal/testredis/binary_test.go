package testredis_test

import (
	"strings"
	"testing"

	"github.com/umbelhq/umbel/internal/testredis"
)

func TestBinary(t *testing.T) {
	if _, err := testredis.Binary(); err != nil {
		t.Fatal(err)
	}
	for name, env := range map[string]struct{ path, server, want string }{
		"none":           {path: "", want: "make redis"},
		"named, missing": {path: "", server: "/nowhere/redis-server", want: "UMBEL_TEST_REDIS_SERVER"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PATH", env.path)
			t.Setenv("UMBEL_TEST_REDIS_SERVER", env.server)
			if path, err := testredis.Binary(); err == nil || !strings.Contains(err.Error(), env.want) {
				t.Errorf("found %q, error %v; want one that names %s", path, err, env.want)
			}
		})
	}
}
