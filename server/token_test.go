package server

import (
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/keys"
	"github.com/umbelhq/umbel/outbox"
)

// FuzzToken: whatever a worker shows is no token, or one whose numbers are in range and which says the same when it is
// written again.
func FuzzToken(f *testing.F) {
	write := func(t token) umbel.Token {
		return tokenOf(outbox.Held{
			Run:     &outbox.Run{ID: t.run, Shard: keys.Shard{Index: t.shard}},
			Ordinal: t.ordinal, Tries: t.attempt - 1, Route: t.route, ClaimedAt: t.claimedAt, Nonce: t.nonce,
		})
	}
	f.Add(string(write(token{
		shard: 3, ordinal: umbel.MaxOrdinal, attempt: 64, route: 63, claimedAt: time.UnixMilli(1), nonce: "abcdefghijklmnopqrstuvwxyz", run: "r.u.n",
	})))
	f.Add("1.0.0.1.0.0.abcdefghijklmnopqrstuvwxyz.r")
	f.Add("1.-0.+0.1.0.0.\x00\xffcdefghijklmnopqrstuvwxyz.\n")
	f.Fuzz(func(t *testing.T, text string) {
		const shards = 16
		got, ok := parseToken(umbel.Token(text), shards)
		if !ok {
			return
		}
		if got.shard < 0 || got.shard >= shards || got.ordinal < 0 || got.ordinal > umbel.MaxOrdinal ||
			got.attempt < 1 || got.attempt > umbel.MaxAttempts || got.route < 0 || got.route >= umbel.MaxRoutes || got.run == "" {
			t.Errorf("%q is %+v", text, got)
		}
		if again, ok := parseToken(write(got), shards); !ok || again != got {
			t.Errorf("%q is %+v, then %+v", text, got, again)
		}
	})
}
