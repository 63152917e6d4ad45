package worker

// Stats is what a worker has in hand, and what it has done since it was made.
type Stats struct {
	Slots  int // Config.Concurrency
	Busy   int // slots that are taken, Stuck included
	Stuck  int // handlers that go on though their attempt is over: they ignored the end of their context
	Held   int // rows in hand: they run, or their outcome is not yet acknowledged
	Queued int // rows in hand whose outcome is not yet acknowledged

	Polls        int64 // polls answered
	PollErrors   int64
	Rows         int64 // rows handed to this worker
	Reports      int64 // reports answered
	ReportErrors int64
	Renewals     int64 // renewal calls answered
	RenewErrors  int64

	Completed int64 // rows whose result was recorded
	Failed    int64 // attempts whose failure was recorded, those that are tried again included
	Released  int64 // rows given back
	Lost      int64 // handlers cancelled since the row was no longer theirs, or might not be
	Cancelled int64 // handlers cancelled since the row or its run was
	Dropped   int64 // outcomes that changed nothing: the row was resolved, or another worker's
	Refused   int64 // outcomes that the engine refused
}

// Stats returns a snapshot. It looks at every row in hand under the lock that rows take to finish: read it every
// second, not for every row.
func (w *Worker) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.stats
	s.Slots, s.Busy, s.Stuck, s.Held = w.cfg.Concurrency, w.busy, w.stuck, len(w.held)
	for _, h := range w.held {
		if h.over {
			s.Queued++
		}
	}
	return s
}
