// Package outbox keeps the rows that stage activities for dispatch: which are due, who holds them, and what
// became of them. [Store] is its contract on any backend; [Redis] is the store that Umbel runs on. The suite
// that every store passes is in package outboxtest.
package outbox
