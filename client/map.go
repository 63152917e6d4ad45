package client

import (
	"iter"

	"github.com/umbelhq/umbel"
)

// Map turns a sequence of anything into items: f says what each one's input, key, node or delay is. The
// sequence is read only as far as the start reads it, and in its goroutine.
func Map[T, In any](seq iter.Seq[T], f func(T) umbel.Item[In]) iter.Seq2[umbel.Item[In], error] {
	if seq == nil {
		return nil
	}
	return func(yield func(umbel.Item[In], error) bool) {
		for v := range seq {
			if !yield(f(v), nil) {
				return
			}
		}
	}
}

// TryMap is [Map] for a sequence that can fail, such as a paginated listing. The first error ends it and fails
// the start.
func TryMap[T, In any](seq iter.Seq2[T, error], f func(T) umbel.Item[In]) iter.Seq2[umbel.Item[In], error] {
	if seq == nil {
		return nil
	}
	return func(yield func(umbel.Item[In], error) bool) {
		for v, err := range seq {
			if err != nil {
				yield(umbel.Item[In]{}, err)
				return
			}
			if !yield(f(v), nil) {
				return
			}
		}
	}
}
