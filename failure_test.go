package umbel_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/umbelhq/umbel"
)

// Messages, stacks and chains are kept up to their limits, and cut one past them, on a rune's edge.
func TestFailureLimits(t *testing.T) {
	t.Parallel()
	for _, over := range []int{0, 1} {
		f := (&umbel.Failure{
			Type:    strings.Repeat("t", umbel.MaxNameBytes+over),
			Message: strings.Repeat("m", umbel.MaxErrorMessageBytes+over),
			Stack:   strings.Repeat("s", umbel.MaxErrorStackBytes+over),
		}).Clip()
		if len(f.Type) != umbel.MaxNameBytes || len(f.Message) != umbel.MaxErrorMessageBytes || len(f.Stack) != umbel.MaxErrorStackBytes {
			t.Errorf("%d bytes above the limits: %d, %d, %d", over, len(f.Type), len(f.Message), len(f.Stack))
		}
	}
	for links := umbel.MaxErrorCauses - 1; links <= umbel.MaxErrorCauses+1; links++ {
		err, deep := errors.New("innermost"), &umbel.Failure{}
		for range links {
			err, deep = fmt.Errorf("around: %w", err), &umbel.Failure{Cause: deep}
		}
		for name, f := range map[string]*umbel.Failure{"an error": umbel.NewFailure(err, 1), "a failure": deep.Clip()} {
			causes := 0
			for f = f.Cause; f != nil; f = f.Cause {
				causes++
			}
			if causes != min(links, umbel.MaxErrorCauses) {
				t.Errorf("%s of %d causes keeps %d", name, links, causes)
			}
		}
	}
	cut := (&umbel.Failure{Message: strings.Repeat("x", umbel.MaxErrorMessageBytes-1) + "é", Type: "a\xffb"}).Clip()
	if len(cut.Message) != umbel.MaxErrorMessageBytes-1 || cut.Type != "a\uFFFDb" {
		t.Errorf("%d bytes, type %q", len(cut.Message), cut.Type)
	}
}
