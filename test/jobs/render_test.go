package jobs

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/umbeltest"
	"github.com/umbelhq/umbel/worker"
)

// Frames that lie on the disks of GPU boxes: each runs on the box that has it, one at a time, on a task queue of its own.

type Frame struct{ Host, Path string }

var Render = umbel.Define[Frame, string]("render")

func TestRender(t *testing.T) {
	inEnv(t, func(t *testing.T, env *umbeltest.Env) {
		box := func(host string) {
			running := 0 // one handler at a time: no lock
			start(env, worker.Config{TaskQueue: "gpu", Node: host, Concurrency: 1}, func(w *worker.Worker) {
				worker.Handle(w, Render, func(_ context.Context, f Frame) (string, error) {
					if running++; running > 1 || f.Host != host {
						t.Errorf("%s renders %+v as one of %d", host, f, running)
					}
					brief()
					running--
					return host + f.Path, nil
				})
			})
		}
		box("gpu-1")
		start(env, worker.Config{Node: "gpu-2"}, func(w *worker.Worker) { // on another queue: it gets nothing
			worker.Handle(w, Render, func(context.Context, Frame) (string, error) {
				t.Error("a worker of another task queue was handed a frame")
				return "", nil
			})
		})

		var frames []Frame
		for i := range 20 {
			frames = append(frames, Frame{Host: fmt.Sprintf("gpu-%d", 1+i%2), Path: fmt.Sprintf("/f%d", i)})
		}
		run, err := client.FanOutItems(t.Context(), env.Client(), Render, client.Map(slices.Values(frames), func(f Frame) umbel.Item[Frame] {
			return umbel.Item[Frame]{Input: f, Node: f.Host}
		}), client.TaskQueue("gpu"))
		if err != nil {
			t.Fatal(err)
		}
		env.Advance(time.Minute)
		if counts, err := run.Progress(t.Context()); err != nil || counts.Completed != 10 || counts.Pending != 10 {
			t.Fatalf("with one box of two: %+v, %v", counts, err)
		}
		box("gpu-2")
		paths, err := run.Gather(t.Context())
		if err != nil || paths[0] != "gpu-1/f0" || paths[19] != "gpu-2/f19" {
			t.Errorf("%v, %v", paths, err)
		}
	})
}
