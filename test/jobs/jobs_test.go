package jobs

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel/umbeltest"
	"github.com/umbelhq/umbel/worker"
)

// inEnv runs f in virtual time with a server of its own.
func inEnv(t *testing.T, f func(t *testing.T, env *umbeltest.Env)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { f(t, umbeltest.New(t)) })
}

// start runs a worker of env until the test ends.
func start(env *umbeltest.Env, cfg worker.Config, register func(*worker.Worker)) {
	w := env.Worker(cfg)
	register(w)
	env.Go(w)
}

// briefly is how long the work of these jobs takes.
const briefly = 100 * time.Millisecond

// brief is work.
func brief() { time.Sleep(briefly) }
