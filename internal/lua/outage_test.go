package lua

import (
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel/internal/testredis"
)

// mayNotPublish is a Redis of its own, as a user sees it who may do everything but publish.
func mayNotPublish(t *testing.T) *testredis.Redis {
	t.Helper()
	r := testredis.Real(t)
	err := r.Client.Do(t.Context(), "ACL", "SETUSER", "quiet", "on", "nopass", "~*", "+@all", "-publish", "resetchannels").Err()
	if err != nil {
		t.Fatal(err)
	}
	quiet := redis.NewClient(&redis.Options{Addr: r.Addr, Username: "quiet", Password: "x", DisableIdentity: true})
	t.Cleanup(func() { _ = quiet.Close() })
	r.Client = quiet
	return r
}

// CASE 66, a script at a time: a Redis that is full drains, and takes nothing new.
func TestFullRedis(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t, testredis.MaxMemory(1<<30)))
	f := w.started(4, 12, "a")
	open := w.started(4, 4, "b")
	outside, staging := w.fan(4, "c"), w.fan(4, "d")
	outside.token("me")
	s := outside.staging()
	s.stage(rows{n: 2})
	staging.stage(rows{n: 2})
	w.sweep(noGap)
	held := f.take(0, 4, long, "0-3")
	lapsing := f.take(0, 2, 1, "4-5")
	w.pass(w.deadline(lapsing))
	must(w.rdb.ConfigSet(t.Context(), "maxmemory", "1").Result())(t)

	before := []map[string]any{f.dumpAll(), open.dumpAll(), outside.dumpAll(), s.dumpAll(), staging.dumpAll()}
	for name, try := range map[string]func() error{
		"stage":  func() error { _, err := w.s.Stage(t.Context(), staging.stageCall(2, rows{n: 1})); return err },
		"new":    func() error { _, err := w.s.Stage(t.Context(), w.fan(4, "e").stageCall(0, rows{n: 1})); return err },
		"commit": func() error { _, err := w.s.Run(t.Context(), staging.commitCall().Call()); return err },
		"dispatch": func() error {
			_, err := w.s.Dispatch(t.Context(), outside.dispatchCall(s, Fence{Token: "me"}))
			return err
		},
		"append": func() error {
			_, err := w.s.Append(t.Context(), outside.appendCall(Fence{Token: "me"}, "a;"))
			return err
		},
	} {
		if err := try(); !Full(err) || !strings.HasPrefix(err.Error(), "lua: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	after := []map[string]any{f.dumpAll(), open.dumpAll(), outside.dumpAll(), s.dumpAll(), staging.dumpAll()}
	wantEqual(t, "state", after, before)
	if Full(nil) || Full(errors.New("other")) {
		t.Error("Full is too wide")
	}

	n := f.take(0, 2, long, "6-7")
	w.check()
	wantEqual(t, "renew", w.renew(f.hold(held, 0, 1, 2, 3)), []string{"hhhh"})
	if err := w.s.Deliver(t.Context(), w.shard.Leases(), []string{n}); err != nil {
		t.Error(err)
	}
	wantEqual(t, "sweep", w.sweep(noGap).nonces(), []string{lapsing})
	if r := f.runSettle(f.lapseCall(lapsing, 4, 5)); r.Outcome != "ok" {
		t.Errorf("lapse: %+v", r)
	}
	w.check()
	f.settle(group(Complete, held, 0, 1), group(Fail, held, 2), group(Requeue, held, 3))
	wantEqual(t, "close", f.settle(group(Complete, "", 3, 4, 5, 6, 7, 8, 9, 10, 11)), "failed")
	if r := must(w.s.Cancel(t.Context(), open.cancelCall()))(t); r.Outcome != "ok" || r.Cancelled != 4 {
		t.Errorf("cancel: %+v", r)
	}
	must(w.rdb.ConfigSet(t.Context(), "maxmemory", "0").Result())(t)
	w.check()
	staging.commit()
	w.check()
}
