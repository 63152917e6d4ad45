package outboxtest

import (
	"flag"
	"testing"
)

// Main runs the tests of a package whose property tests take ten checks where neither rapid's own flag nor a full run asks
// for more, and returns their exit code.
func Main(m *testing.M) int {
	flag.Parse()
	asked := Full()
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "rapid.checks" })
	if !asked {
		if err := flag.Set("rapid.checks", "10"); err != nil {
			panic(err)
		}
	}
	return m.Run()
}

// Shards are the numbers of shards that a Redis is tested with; mini says whether it is the one in memory.
func Shards(mini bool) []int {
	switch {
	case Full():
		return []int{1, 4}
	case mini:
		return []int{1}
	default:
		return []int{4}
	}
}
