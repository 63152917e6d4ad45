package jobs

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/umbeltest"
)

// Handlers alone, with no server: the second attempt of one, the wait that another asks for, a context that has ended.

func TestUnitMake(t *testing.T) {
	t.Parallel()
	images := &Images{prefix: "thumbs/"}
	make7 := func(attempt int) (Thumb, error) {
		return umbeltest.Do(t, Thumbnail, images.Make, Image{Key: "7.png"}, umbeltest.Attempt{Info: umbel.Info{Attempt: attempt}})
	}
	if _, err := make7(1); err == nil || err.Error() != "storage is busy" {
		t.Errorf("attempt 1: %v", err)
	}
	if thumb, err := make7(3); err != nil || thumb != (Thumb{Path: "thumbs/7.png"}) {
		t.Errorf("attempt 3: %v, %v", thumb, err)
	}
	_, err := umbeltest.Do(t, Thumbnail, images.Make, Image{Key: "a.txt"}, umbeltest.Attempt{})
	if f, ok := errors.AsType[*umbel.Failure](err); !ok || f.Type != "not_an_image" || !f.NonRetryable {
		t.Errorf("no image: %+v", err)
	}
}

func TestUnitAskWaits(t *testing.T) {
	t.Parallel()
	service := &quota{perMinute: 0, window: time.Now()}
	_, err := umbeltest.Do(t, Ask, service.handle, Prompt{Text: "hello"}, umbeltest.Attempt{})
	if d := umbel.RetryDelay(err); d <= 0 || d > time.Minute {
		t.Errorf("it asks for %v: %v", d, err)
	}
}

func TestUnitMakeCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(umbeltest.Context(t, umbeltest.Attempt{}))
	cancel(umbel.ErrCancelled)
	if _, err := (&Images{}).Make(ctx, Image{Key: "a.png"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled attempt returned %v", err)
	}
}
