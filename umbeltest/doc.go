// Package umbeltest is the test kit for programs that use Umbel. It needs nothing but the test's process.
//
// [Do] runs one attempt of a handler with no server, as a worker would, and [Context] is the context that a handler
// expects:
//
//	func TestMake(t *testing.T) {
//		thumb, err := umbeltest.Do(t, Thumbnail, images.Make, Image{Key: "a.png"}, umbeltest.Attempt{})
//		…
//	}
//
// [New] starts a server on an in-memory Redis, for tests of clients and workers together. Inside synctest.Test time is
// virtual: what takes hours passes in an instant, and always alike. Here a worker dies, and its row comes back when
// the lease lapses:
//
//	func TestWorkerDies(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			env := umbeltest.New(t)
//			first, second := env.Worker(worker.Config{}), env.Worker(worker.Config{})
//			worker.Handle(first, Greet, func(context.Context, string) (string, error) {
//				env.Kill(first)
//				return "from the grave", nil
//			})
//			worker.Handle(second, Greet, greet)
//			env.Go(first)
//			run, err := client.FanOut(t.Context(), env.Client(), Greet, slices.Values([]string{"you"}))
//			if err != nil {
//				t.Fatal(err)
//			}
//			env.Advance(time.Second)
//			env.Go(second)
//			got, err := run.Gather(t.Context())
//			if err != nil || got[0] != "hello you, attempt 2" {
//				t.Fatal(got, err)
//			}
//		})
//	}
//
// Handlers that do real I/O, to a database or over the network, need real time: a bubble's clock stands still while
// they wait for it. New works outside a bubble too; only [Env.Advance] does not.
//
// In a bubble all goroutines must end with the test. Those of the Env do; a handler that waits for something else than
// its context and the bubble's time is for its test to let go.
package umbeltest
