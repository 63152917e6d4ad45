package umbeltest_test

import (
	"context"
	"io"
	"slices"
	"testing"
)

// Set-up of the examples: they have no T, and are given this.
type exampleT struct {
	testing.TB

	ctx      context.Context
	cleanups []func()
}

// testT stands for the T of a test; end is the test's end.
func testT() (t testing.TB, end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	x := &exampleT{ctx: ctx}
	return x, func() {
		cancel()
		for _, clean := range slices.Backward(x.cleanups) {
			clean()
		}
	}
}

func (x *exampleT) Context() context.Context { return x.ctx }
func (x *exampleT) Cleanup(f func())         { x.cleanups = append(x.cleanups, f) }
func (x *exampleT) Helper()                  {}
func (x *exampleT) Name() string             { return "TestGreet" }
func (x *exampleT) Output() io.Writer        { return io.Discard }
