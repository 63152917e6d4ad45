// Package history keeps a workflow's append-only log of events and everything that must change in the same
// step as the log: dispatch, outcomes, cancel and close. [Store] is its contract on any backend, [Recorder]
// the fenced writer on top of it, [Redis] the store that Umbel runs on. The suite that every store passes is
// in package historytest.
package history
