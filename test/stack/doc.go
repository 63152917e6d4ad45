// Package stack tests servers, workers and clients together, in one process: on miniredis in virtual time, on a real
// Redis and on a cluster of three. A test says by its name, or in a comment, which promise of docs or which case from
// the field it proves. After each test the stored state must satisfy its invariant.
package stack
