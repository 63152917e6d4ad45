// Package memredis is an in-memory Redis inside the process: for the examples
// and for tests.
//
// It is miniredis behind in-memory pipes: no port, no process, nothing to
// install. Nothing survives the process, it is one Go map under one lock, and
// a real Redis is many times faster. It is never what production runs on.
package memredis
