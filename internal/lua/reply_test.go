package lua

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel/internal/testredis"
)

// answers is a client hook that answers every script itself.
type answers struct{ reply any }

func (answers) DialHook(next redis.DialHook) redis.DialHook { return next }

func (answers) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (a answers) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		cmd.(*redis.Cmd).SetVal(a.reply)
		return nil
	}
}

// answered are a world's calls, on a Redis that answers all of them with reply.
func answered(t *testing.T, reply any) map[string]func() error {
	t.Helper()
	w := newWorld(t, testredis.Mini(t))
	w.rdb.AddHook(answers{reply})
	f := w.fan(1, "a")
	ctx := t.Context()
	parse := func(c Call, parse func(Reply) error) func() error {
		return func() error {
			r, err := w.s.Run(ctx, c)
			if err != nil {
				return err
			}
			return parse(r)
		}
	}
	return map[string]func() error{
		"stage":    func() error { _, err := w.s.Stage(ctx, f.stageCall(0, rows{n: 1})); return err },
		"commit":   parse(f.commitCall().Call(), func(r Reply) error { _, err := ParseCommit(r); return err }),
		"dispatch": func() error { _, err := w.s.Dispatch(ctx, f.dispatchCall(f, Fence{})); return err },
		"append":   func() error { _, err := w.s.Append(ctx, f.appendCall(Fence{}, "a")); return err },
		"claim":    func() error { _, err := w.s.Claim(ctx, w.claimCall(1, nil, f.pair(0))); return err },
		"renew": func() error {
			_, err := w.s.Renew(ctx, Renew{Holds: []Hold{f.hold("n", 1)}})
			return err
		},
		"deliver": func() error { return w.s.Deliver(ctx, "k", []string{"n"}) },
		"sweep":   func() error { _, err := w.s.Sweep(ctx, w.sweepCall(1)); return err },
		"settle":  parse(f.settleCall().Call(), func(r Reply) error { _, err := ParseSettle(r); return err }),
		"cancel":  func() error { _, err := w.s.Cancel(ctx, f.cancelCall()); return err },
	}
}

// What an older binary must not misread: every call knows its outcomes and refuses others by name.
func TestUnknownOutcomes(t *testing.T) {
	t.Parallel()
	for name, call := range answered(t, []any{"new", int64(1)}) {
		want := "lua: " + name + `: outcome "new" is unknown to this version`
		if err := call(); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestRepliesOfTheWrongShape(t *testing.T) {
	t.Parallel()
	one := int64(1)
	for want, reply := range map[string]any{
		"reply has the shape int64, want a list":          one,
		"reply has the shape []interface {}, want a list": []any{},
		"reply begins with int64, want a word":            []any{one},
	} {
		for name, call := range answered(t, reply) {
			if err := call(); err == nil || err.Error() != "lua: "+name+": "+want {
				t.Errorf("%v, want %s", err, want)
			}
		}
	}
	for name, replies := range map[string][][]any{
		"stage":    {{"ok"}, {"ok", "x"}, {"limit"}, {"view", one, "type", "routes"}},
		"commit":   {{"ok"}, {"exists", "run", one}, {"full"}},
		"dispatch": {{"ok"}, {"run"}, {"moved", nil}},
		"append":   {{"ok"}, {"conflict", []any{}}},
		"claim": {
			{"ok"}, {"ok", one, one}, {"ok", one, []any{"route"}}, {"ok", one, []any{}, one}, {"ok", one, []any{}, []any{one, "", one}},
			{"ok", one, []any{}, []any{one, "", []any{"x", "y"}, []any{}, []any{}, []any{}}},
			{"ok", one, []any{}, []any{one, "", []any{}, []any{one}, []any{}, []any{}}},
			{"ok", one, []any{}, []any{one, "", []any{}, []any{}, []any{}}},
		},
		"renew":  {{"ok"}, {"ok", "hh"}, {"ok", ""}},
		"sweep":  {{"ok", one, one}, {"ok", one, one, []any{"nonce"}}, {"ok", one, one, one}},
		"settle": {{"ok"}, {"ok", "running", one, one}, {"ok", "running", one, []any{one, one, "dd", one}}, {"ok", "running", one, []any{one}}, {"live"}},
		"cancel": {{"ok", one}, {"closed"}, {"routes"}},
	} {
		for _, reply := range replies {
			err := answered(t, reply)[name]()
			if err == nil || !strings.HasPrefix(err.Error(), "lua: "+name+": reply ") {
				t.Errorf("%s %v: %v", name, reply, err)
			}
		}
	}
}
