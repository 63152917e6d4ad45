package stack

import (
	"context"
	"errors"
	"runtime"
)

// explode ends in a way of its own for the inputs 0 to 2.
func explode(_ context.Context, in int) (int, error) {
	switch in {
	case 0:
		panic(nil) //nolint:govet // what users write
	case 1:
		panic(errors.New("as a panic"))
	case 2:
		runtime.Goexit()
	}
	return in, nil
}
