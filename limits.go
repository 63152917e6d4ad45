package umbel

import "time"

// Limits. Each is refused with a typed error that names it, before anything becomes visible.
const (
	// MaxNameBytes bounds every name: namespace, task queue, node, activity type, workflow ID, key. It is
	// what file systems allow for one, and it bounds the keys in Redis.
	MaxNameBytes = 255
	// MaxPayloadBytes bounds an input or a result. A poll reply must hold at least one whole row; what is
	// larger belongs in an object store.
	MaxPayloadBytes = 2 << 20
	// MaxErrorMessageBytes bounds a failure's message; the rest is cut. It is kept with each attempt.
	MaxErrorMessageBytes = 4 << 10
	// MaxErrorStackBytes bounds a failure's stack; the rest is cut. It is kept of the last attempt only.
	MaxErrorStackBytes = 16 << 10
	// MaxErrorCauses bounds the chain of causes of a failure; deeper ones are cut.
	MaxErrorCauses = 8
	// MaxRows bounds the rows of a run.
	MaxRows = 10_000_000
	// MaxOrdinal is the largest ordinal that is accepted: the format has room for eight digits, and a run's
	// bitmaps for 2 MiB each. MaxRows may grow up to it.
	MaxOrdinal = 1<<24 - 1
	// MaxRunInputBytes bounds the inputs of a run: a shard's master must hold them in memory.
	MaxRunInputBytes = 4 << 30
	// MaxRoutes bounds the routes of a run. Cancel and close touch each of them in one step.
	MaxRoutes = 64
	// MaxPollRows and MaxPollBytes bound a poll's reply, so that the rows of one reply can be started
	// well within a lease.
	MaxPollRows  = 1_000
	MaxPollBytes = 4 << 20
	// MaxReportItems and MaxReportBytes bound a report; a worker splits what is more. One larger item
	// travels alone.
	MaxReportItems = 1_000
	MaxReportBytes = 4 << 20
	// MaxPageBytes bounds a page of history or results. One larger event travels alone.
	MaxPageBytes = 4 << 20
	// MaxPageItems bounds the events or results of a page.
	MaxPageItems = 10_000
	// MaxListItems bounds the runs of a page of a list: each is a record read for itself.
	MaxListItems = 1_000
	// MaxStageBytes bounds a staging call. One larger item travels alone.
	MaxStageBytes = 1 << 20
	// MaxStageRows bounds the rows of a staging call, so that its script stays far below 10 ms.
	MaxStageRows = 10_000
	// MinLease and MaxLease bound the lease of a claim. A shorter one lapses when Redis rewrites its AOF.
	MinLease = time.Second
	MaxLease = 24 * time.Hour
	// DefaultLease is how long a worker may be silent before its rows are given to another.
	DefaultLease = 30 * time.Second
	// MaxAttempts bounds the attempts of a row; with the default policy that is more than an hour of tries.
	MaxAttempts = 64
	// MaxDelay bounds delays, timeouts and waits between attempts: ten years of 365 days, far within
	// what a millisecond instant in a double holds.
	MaxDelay = 10 * 365 * 24 * time.Hour
	// MaxPollWait bounds how long a poll, or a wait for results, is held open: below the 60 s at which
	// common proxies cut a silent connection.
	MaxPollWait = 50 * time.Second
	// MaxConcurrency bounds the slots of a worker.
	MaxConcurrency = 1_000_000
)
