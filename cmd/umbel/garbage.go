package main

import (
	"os"
	"runtime/debug"
)

// collectLess lets the heap grow to five times of what is in use before it is collected, unless GOGC says otherwise.
// What a server or a worker keeps is a few megabytes.
func collectLess() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}
