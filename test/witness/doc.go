// Package witness watches from outside what tests do to whole processes: it starts and kills them, reads from Redis how
// a workflow stands, and holds a history to the promises.
package witness
