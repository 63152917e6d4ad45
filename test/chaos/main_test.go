package chaos_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/umbelhq/umbel/test/witness"
)

// umbel is the binary.
var umbel string

func TestMain(m *testing.M) {
	if addr := os.Getenv(roleVar); addr != "" {
		fmt.Fprintln(os.Stderr, takePills(addr))
		os.Exit(2)
	}
	os.Exit(witness.Build(m, &umbel, "../../cmd/umbel"))
}
