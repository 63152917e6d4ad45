package outboxtest

import "os"

// FullVar names the environment variable that asks for the whole of what the suites can do: the largest sizes, every
// number of shards on every Redis, rapid's own number of checks. Without it they take a smaller part of each kind.
const FullVar = "UMBEL_TEST_FULL"

// Full reports whether [FullVar] is set.
func Full() bool { return os.Getenv(FullVar) != "" }
