package witness

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/umbelhq/umbel/outbox/outboxtest"
)

// Full says whether to take the time that the promise speaks of.
func Full() bool { return outboxtest.Full() }

// Seeded returns the random numbers of a test, and says how to get them again.
func Seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64() //nolint:gosec // chance, not secrecy
	if given := os.Getenv("UMBEL_TEST_SEED"); given != "" {
		var err error
		if seed, err = strconv.ParseUint(given, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("UMBEL_TEST_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // see above
}
