package kill_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/umbelhq/umbel/test/witness"
)

// roleVar names the environment variable that makes this binary one of the programs that the tests kill.
const roleVar = "UMBEL_TEST_ROLE"

// checksum is the example program, built so that one read in fifty is slow.
var checksum string

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		if err := play(role, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, role+":", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(witness.Build(m, &checksum, "-tags", "slowreads", "../../examples/checksum"))
}
