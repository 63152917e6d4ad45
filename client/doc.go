// Package client starts fan-outs and reads what came of them.
//
//	c, err := client.New(engine, client.Config{})
//	run, err := client.FanOut(ctx, c, Thumbnail, slices.Values(images), client.WorkflowID("thumbs"))
//	thumbs, err := run.Gather(ctx)          // []Thumb by ordinal
//	for r, err := range run.Results(ctx) {} // as they finish, in constant memory
//	run = client.Attach(c, Thumbnail, "thumbs") // from any process, at any time
//
// A start under a workflow ID is idempotent: with the same inputs it attaches to the run that is there. Inputs
// are read once, checked one by one and sent in batches, so memory does not grow with their number; nothing of
// a start is visible before all of it is.
//
// Every call on the engine may be repeated, and is while the answer is [umbel.ErrUnavailable]: until the
// context's deadline, or for [Patience] where it has none.
package client
