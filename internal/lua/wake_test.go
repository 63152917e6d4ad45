package lua

import (
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// listener hears the wake-ups of a world.
type listener struct {
	*world

	sub *redis.PubSub
}

func (w *world) listen() *listener {
	w.t.Helper()
	l := &listener{world: w, sub: w.rdb.Subscribe(w.ctx(), w.wake.Channel)}
	w.t.Cleanup(func() { _ = l.sub.Close() })
	must(l.sub.Receive(w.ctx()))(w.t)
	return l
}

// heard returns what was said since the last call. It says something itself, from the shard's own node, and waits
// for that.
func (l *listener) heard() []string {
	l.t.Helper()
	const end = "return redis.call('PUBLISH', ARGV[1], 'end')"
	must(l.rdb.Eval(l.ctx(), end, []string{l.shard.Ready()}, l.wake.Channel).Result())(l.t)
	out := []string{}
	for {
		m := must(l.sub.ReceiveMessage(l.ctx()))(l.t)
		if m.Payload == "end" {
			return out
		}
		out = append(out, m.Payload)
	}
}

// at is the wake-up for a route at the instant that stands in ready.
func (w *world) at(route string) string {
	w.t.Helper()
	for _, z := range w.members(w.shard.Ready()) {
		if z.Member == route {
			return "r 1 " + strconv.FormatInt(int64(z.Score), 10) + " " + route
		}
	}
	w.t.Fatalf("route %s is not ready", route)
	return ""
}

func TestWakeUps(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		l := w.listen()
		f := w.fan(4, "a", "b")
		f.stage(rows{n: 5}, rows{n: 2, route: 1, delay: 100_000})
		wantEqual(t, "staged", l.heard(), []string{})
		f.commit()
		wantEqual(t, "committed", l.heard(), []string{w.at(f.routes[0]), w.at(f.routes[1])})
		f.runCommit(f.commitCall())
		wantEqual(t, "committed again", l.heard(), []string{})

		w.started(4, 1, "a") // the route waits for an earlier instant, or for the same
		wantEqual(t, "another on route a", l.heard(), []string{})
		w.started(4, 1, "b")
		wantEqual(t, "another on route b", l.heard(), []string{w.at(f.routes[1])})

		n := f.take(0, 5, long, "0-4")
		wantEqual(t, "claimed", l.heard(), []string{})
		f.settle(group(Complete, n, 0), group(Requeue, n, 1)) // the other run still waits on route a
		wantEqual(t, "put back", l.heard(), []string{})
		w.fans[1].take(0, 1, long, "0-0")
		f.take(0, 1, long, "1-1")
		later := group(Requeue, n, 2)
		later.Items[0].Due = -1_000_000
		f.settle(later)
		wantEqual(t, "the only one of the route", l.heard(), []string{w.at(f.routes[0])})
		later = group(Requeue, n, 3)
		later.Items[0].Due = -2_000_000
		f.settle(later)
		wantEqual(t, "a later one", l.heard(), []string{})
		later = group(Requeue, n, 4)
		later.Items[0].Due = -500_000
		f.settle(later)
		wantEqual(t, "an earlier one", l.heard(), []string{w.at(f.routes[0])})

		must(w.s.Cancel(t.Context(), f.cancelCall()))(t)
		wantEqual(t, "cancelled", l.heard(), []string{"c 1 " + f.id})
		g := w.fans[2]
		g.settle(group(Complete, "", 0))
		wantEqual(t, "closed", l.heard(), []string{"c 1 " + g.id})
	})
}

func TestWakeUpsOfADispatch(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		l := w.listen()
		f := w.fan(4, "a")
		for i, want := range []int{1, 0} {
			s := f.staging()
			s.stage(rows{n: 2})
			f.dispatch(s, Fence{})
			if got := l.heard(); len(got) != want || want > 0 && got[0] != w.at(f.routes[0]) {
				t.Errorf("dispatch %d: %q", i, got)
			}
		}
	})
}

// Someone may forbid PUBLISH: everything works, only nobody is woken. CASE 65.
func TestWithoutTheRightToPublish(t *testing.T) {
	t.Parallel()
	w := newWorld(t, mayNotPublish(t))
	if err := w.rdb.Publish(t.Context(), w.wake.Channel, "x").Err(); err == nil || !strings.HasPrefix(err.Error(), "NOPERM") {
		t.Fatalf("the user may publish: %v", err)
	}
	f := w.started(4, 6, "a")
	n := f.take(0, 3, long, "0-2")
	wantEqual(t, "status", f.settle(group(Complete, n, 0, 1), group(Requeue, n, 2)), "running")
	w.check()
	wantEqual(t, "status", f.settle(group(Complete, "", 2, 3, 4, 5)), "completed")
	g := w.started(4, 6, "a")
	if r := must(w.s.Cancel(t.Context(), g.cancelCall()))(t); r.Outcome != "ok" {
		t.Errorf("%+v", r)
	}
	h := w.fan(4, "a")
	s := h.staging()
	s.stage(rows{n: 2})
	if r := h.dispatch(s, Fence{}); r.Outcome != "ok" {
		t.Errorf("%+v", r)
	}
	w.check()
}
