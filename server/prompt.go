package server

import "context"

// prompt returns when its context ends, whatever Redis does: a client of Redis that waits for a reply heeds a
// deadline, but no cancellation. The call goes on in the background until Redis answers or is given up; like every
// call it may be repeated.
func prompt[Req, Rep any](ctx context.Context, op string, r Req, call func(context.Context, Req) (Rep, error)) (Rep, error) {
	type answer struct {
		reply Rep
		err   error
	}
	if ctx.Done() == nil {
		return call(ctx, r)
	}
	done := make(chan answer, 1)
	go func() {
		reply, err := call(ctx, r)
		done <- answer{reply, err}
	}()
	select {
	case a := <-done:
		return a.reply, a.err
	case <-ctx.Done():
	}
	select { // an answer that is there all the same is better than none
	case a := <-done:
		return a.reply, a.err
	default:
		var none Rep
		return none, ended(ctx, op)
	}
}
