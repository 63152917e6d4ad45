package jobs

import (
	"testing"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
	"github.com/umbelhq/umbel/umbeltest"
	"github.com/umbelhq/umbel/worker"
)

// One fan-out of several activities, each with its own retries and its own types.

func TestMixed(t *testing.T) {
	inEnv(t, func(t *testing.T, env *umbeltest.Env) {
		start(env, worker.Config{}, func(w *worker.Worker) {
			worker.Handle(w, Thumbnail, (&Images{prefix: "thumbs/"}).Make)
			worker.Handle(w, Ask, (&quota{perMinute: 1}).handle)
		})
		calls := func(yield func(umbel.Call, error) bool) {
			_ = yield(Thumbnail.Call(umbel.Item[Image]{Input: Image{Key: "7.png"}, Key: "image"}), nil) &&
				yield(Ask.Call(umbel.Item[Prompt]{Input: Prompt{Text: "what is it?"}, Key: "question"}), nil) &&
				yield(Thumbnail.Call(umbel.Item[Image]{Input: Image{Key: "a.txt"}, Key: "no image"}), nil)
		}
		run, err := client.FanOutMixed(t.Context(), env.Client(), calls)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for r, err := range run.Results(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			switch r.Type {
			case Thumbnail.Name():
				thumb, err := Thumbnail.Output(r)
				got[r.Key] = thumb.Path
				if err != nil {
					got[r.Key] = err.Error()
				}
			case Ask.Name():
				answer, err := Ask.Output(r)
				if err != nil {
					t.Error(err)
				}
				got[r.Key] = answer.Text
			}
		}
		if len(got) != 3 || got["image"] != "thumbs/7.png" || got["question"] != "WHAT IS IT?" || got["no image"] != "cannot decode a.txt" {
			t.Errorf("%v", got)
		}
	})
}
