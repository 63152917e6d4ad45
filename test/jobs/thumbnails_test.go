package jobs

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/umbeltest"
	"github.com/umbelhq/umbel/worker"
)

// Thumbnails of a bucket: the inputs are a listing that can break off, and what failed is read with its input.

type Image struct{ Bucket, Key string }

type Thumb struct{ Path string }

var Thumbnail = umbel.Define[Image, Thumb]("thumbnail",
	umbel.StartToClose(2*time.Minute), umbel.Retry(umbel.RetryPolicy{MaxAttempts: 5}))

// Images makes thumbnails. Its method is the handler.
type Images struct{ prefix string }

func (h *Images) Make(ctx context.Context, in Image) (Thumb, error) {
	switch {
	case strings.HasSuffix(in.Key, ".txt"):
		return Thumb{}, umbel.NonRetryable(umbel.Typed("not_an_image", errors.New("cannot decode "+in.Key)))
	case strings.HasSuffix(in.Key, "7.png") && worker.Info(ctx).Attempt < 3:
		return Thumb{}, errors.New("storage is busy")
	}
	return Thumb{Path: h.prefix + in.Key}, ctx.Err()
}

// bucket lists n objects, every hundredth of which is no image. It breaks off with an error where it is told to.
func bucket(n int, breaks error) iter.Seq2[Image, error] {
	return func(yield func(Image, error) bool) {
		for i := range n {
			key := fmt.Sprintf("%d.png", i)
			if i%100 == 99 {
				key = fmt.Sprintf("%d.txt", i)
			}
			if !yield(Image{Bucket: "holiday", Key: key}, nil) {
				return
			}
		}
		if breaks != nil {
			yield(Image{}, breaks)
		}
	}
}

func startThumbnails(ctx context.Context, c *client.Client, list iter.Seq2[Image, error]) (*client.Run[Thumb], error) {
	items := client.TryMap(list, func(i Image) umbel.Item[Image] { return umbel.Item[Image]{Input: i, Key: i.Key} })
	return client.FanOutItems(ctx, c, Thumbnail, items, client.WorkflowID("thumbs-2026-11-30"), client.Existing)
}

func TestThumbnails(t *testing.T) {
	inEnv(t, func(t *testing.T, env *umbeltest.Env) {
		start(env, worker.Config{}, func(w *worker.Worker) { worker.Handle(w, Thumbnail, (&Images{prefix: "thumbs/"}).Make) })

		broken := errors.New("listing: connection reset")
		if _, err := startThumbnails(t.Context(), env.Client(), bucket(500, broken)); !errors.Is(err, broken) {
			t.Fatalf("a start from a listing that breaks off: %v", err)
		}
		run, err := startThumbnails(t.Context(), env.Client(), bucket(1000, nil))
		if err != nil {
			t.Fatal(err)
		}
		if run.Attached() {
			t.Error("the start that broke off left a run behind")
		}

		thumbs, err := run.Gather(t.Context())
		failed, ok := errors.AsType[*umbel.FanOutError](err)
		if !ok || failed.Counts.Completed != 990 || failed.Counts.Failed != 10 || failed.Sample[0].Err.Type != "not_an_image" {
			t.Fatalf("gather: %v", err)
		}
		if thumbs[17] != (Thumb{Path: "thumbs/17.png"}) || thumbs[99] != (Thumb{}) {
			t.Errorf("thumbs 17 and 99: %v, %v", thumbs[17], thumbs[99])
		}

		// Another process looks at the failures, by name.
		seen := map[string]string{}
		for r, err := range client.Attach(env.Client(), Thumbnail, run.WorkflowID()).Results(t.Context(), client.OnlyFailed(), client.WithInputs()) {
			if err != nil {
				t.Fatal(err)
			}
			in, err := Thumbnail.Input(r.Row)
			if err != nil || in.Bucket != "holiday" || in.Key != r.Key || r.Err == nil || r.Cursor == "" {
				t.Errorf("%s: input %+v, %v, failed with %v", r.Key, in, err, r.Err)
			}
			seen[r.Key] = r.Err.Error()
		}
		if len(seen) != 10 || seen["99.txt"] != "cannot decode 99.txt" {
			t.Errorf("failures: %v", seen)
		}
	})
}
