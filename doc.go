// Package umbel is the vocabulary of Umbel, a durable fan-out engine: what client, worker and server share.
//
// A fan-out hands N inputs to one activity. Workers on any number of machines run them, and each result comes
// back exactly once, whatever crashes on the way; an activity may run more than once.
//
//	// shared by both sides: the value is the contract
//	var Thumbnail = umbel.Define[Image, Thumb]("thumbnail", umbel.StartToClose(2*time.Minute))
//
//	// engine is client.Dial("http://127.0.0.1:7890"), or server.Open(ctx, redis, server.Config{}) in this process
//
//	// worker
//	w, err := worker.New(engine, worker.Config{Concurrency: 32})
//	worker.Handle(w, Thumbnail, func(ctx context.Context, in Image) (Thumb, error) { … })
//	err = w.Run(ctx) // until ctx ends; then it drains, and hands back what takes too long
//
//	// client
//	c, err := client.New(engine, client.Config{})
//	run, err := client.FanOut(ctx, c, Thumbnail, slices.Values(images), client.WorkflowID("thumbs"))
//	thumbs, err := run.Gather(ctx) // []Thumb by ordinal
//
// [Activity] is the contract of one activity type, [Payload] what travels, [Failure] a failed attempt,
// [Error] what a call returns, [Engine] the seam between the sides, [Event] a line of a workflow's history.
// The limits are constants of this package, each with its reason.
package umbel
