package lua

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel/internal/testredis"
)

// strict is a client hook that sends every script with '#!lua' in front: a cluster then refuses keys that were not
// declared. Plain EVAL does not.
type strict struct{ used map[string]bool }

func (strict) DialHook(next redis.DialHook) redis.DialHook { return next }

func (strict) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (s strict) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); cmd.Name() == "evalsha" {
			for _, sc := range all {
				if args[1] == sc.sha {
					args[0], args[1] = "eval", "#!lua\n"+sc.source
					s.used[sc.name] = true
				}
			}
		}
		return next(ctx, cmd)
	}
}

// Every script, in a life as it happens, touches declared keys of one slot only.
func TestScriptsTouchDeclaredKeysOnly(t *testing.T) {
	t.Parallel()
	r := testredis.ClusterModeSingle(t)
	hook := strict{used: map[string]bool{}}
	r.Client.AddHook(hook)
	w := newWorld(t, r)
	w.sweep(noGap)
	f := w.fan(4, "a", "b")
	f.large[1] = true
	f.stage(rows{n: 6}, rows{n: 3, route: 1}, rows{n: 1, delay: 3_600_000})
	f.stage(rows{n: 4})
	f.commit()
	other := w.started(4, 3, "a")
	w.started(4, 0)
	f.resolve(2, 4)
	n := nonce()
	p := w.claimCall(1, []Taker{{n, 3, "one"}, {nonce(), 9, "two"}}, f.pair(0), other.pair(0), f.pair(1))
	p.Pairs[0].Most = 5
	if c := w.runClaim(p); len(c.Pairs) != 3 || granted(c.Pairs[0]) != "0-1,3-3,5-5,10-10" || len(c.Pairs[0].Large) != 1 {
		t.Errorf("%+v", c)
	}
	first := Nonce(n, 0)
	if err := w.s.Deliver(t.Context(), w.shard.Leases(), []string{first}); err != nil {
		t.Error(err)
	}
	wantEqual(t, "renew", w.renew(f.hold(first, 0, 1, 3), other.hold(first, 0)), []string{"hhh", "l"})
	w.pass(w.now() + 1)
	w.sweep(noGap)
	f.settle(group(Complete, first, 0))
	w.pass(w.deadline(first))
	f.runSettle(f.lapseCall(first, 1, 3))
	fresh := group(Requeue, "", 11)
	fresh.Items[0].Span = "00000011f00000013"
	f.settle(fresh)
	w.check()
	must(w.s.Cancel(t.Context(), f.cancelCall()))(t)
	other.resolve(seq(0, 2)...)
	wantEqual(t, "status", other.status(), "completed")

	out := w.fan(4, "a", "b")
	out.token("me")
	for _, base := range []int64{0, 12} {
		s := out.staging()
		s.stage(rows{n: 3}, rows{n: 3, route: 1})
		if r := out.dispatch(s, Fence{Token: "me", Head: base}); r.Outcome != "ok" {
			t.Fatalf("%+v", r)
		}
	}
	must(w.s.Append(t.Context(), out.appendCall(Fence{Token: "me", Head: 24}, "a;")))(t)
	w.check()
	for _, s := range all {
		if !hook.used[s.name] {
			t.Errorf("%s did not run", s.name)
		}
	}
}

// The check above can fail: what a script must not do is refused there, and only there.
func TestUndeclaredKeysAreRefused(t *testing.T) {
	t.Parallel()
	r := testredis.ClusterModeSingle(t)
	for _, bad := range []string{
		"redis.call('SET', KEYS[1], 1) redis.call('SET', '{elsewhere}x', 1) return {'ok'}",
		"return {'ok', redis.call('GET', '{elsewhere}x')}",
	} {
		keys := []string{r.Prefix + ":{here}:x"}
		if err := r.Client.Eval(t.Context(), bad, keys).Err(); err != nil && !errors.Is(err, redis.Nil) {
			t.Errorf("without the line: %v", err)
		}
		err := r.Client.Eval(t.Context(), "#!lua\n"+bad, keys).Err()
		if err == nil || !strings.Contains(err.Error(), "keys that do not hash to the same slot") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
