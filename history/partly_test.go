package history

import (
	"errors"
	"testing"

	"github.com/umbelhq/umbel"
)

// A cancel of many rows takes several steps: an error of a later one must not say that nothing was done.
func TestPartlyApplied(t *testing.T) {
	t.Parallel()
	refused := &umbel.Error{Code: umbel.CodeOverloaded, Op: "cancel", NotApplied: true}
	for cancelled, want := range map[int64]bool{0: true, 1: false, 250: false} {
		e, ok := errors.AsType[*umbel.Error](partly(refused, cancelled))
		if !ok || e.NotApplied != want || e.Code != refused.Code || e.Op != refused.Op {
			t.Errorf("after %d rows: %+v, want not applied %v", cancelled, e, want)
		}
	}
	if !refused.NotApplied {
		t.Error("the error itself was changed")
	}
	other := errors.New("other")
	if got := partly(other, 1); !errors.Is(got, other) {
		t.Errorf("another error became %v", got)
	}
}
