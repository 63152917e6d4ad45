// Package witness watches from outside what tests do to whole processes: it starts and kills them, serves those that
// call a server, reads from Redis how a workflow stands, and holds a history to the promises.
package witness
