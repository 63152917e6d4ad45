// Package memredis is the in-memory Redis that comes inside the binary: for
// `umbel dev`, for examples and for tests of users' own code.
//
// It is miniredis behind in-memory pipes: no port, no process, nothing to
// install. Nothing survives the process, it is one Go map under one lock, and
// a real Redis is many times faster. It is never what production runs on.
package memredis
