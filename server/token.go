package server

import (
	"strconv"
	"strings"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/outbox"
)

// token is what a worker shows for a row: 1.SHARD.ORDINAL.ATTEMPT.ROUTE.CLAIMED.NONCE.RUN, numbers in base 36.
// It holds no secret: the nonce is compared with the claim's record, the run's namespace with the caller's.
type token struct {
	shard     int
	ordinal   int64
	attempt   int
	route     int
	claimedAt time.Time
	nonce     string
	run       umbel.RunID
}

const tokenVersion = "1"

func tokenOf(h outbox.Held) umbel.Token {
	b := make([]byte, 0, 96)
	b = append(b, tokenVersion...)
	for _, n := range []int64{int64(h.Run.Shard.Index), h.Ordinal, int64(h.Tries + 1), int64(h.Route), h.ClaimedAt.UnixMilli()} {
		b = append(b, '.')
		b = strconv.AppendInt(b, n, 36)
	}
	b = append(b, '.')
	b = append(b, h.Nonce...)
	b = append(b, '.')
	b = append(b, h.Run.ID...)
	return umbel.Token(b)
}

// nonceBytes is how long a claim's nonce is.
const nonceBytes = 26

func parseToken(s umbel.Token, shards int) (token, bool) {
	p := strings.SplitN(string(s), ".", 8)
	if len(p) != 8 || p[0] != tokenVersion || len(p[6]) != nonceBytes || p[7] == "" || len(p[7]) > umbel.MaxNameBytes {
		return token{}, false
	}
	var n [5]int64
	for i := range n {
		var err error
		if n[i], err = strconv.ParseInt(p[i+1], 36, 64); err != nil || n[i] < 0 {
			return token{}, false
		}
	}
	if n[0] >= int64(shards) || n[1] > umbel.MaxOrdinal || n[2] < 1 || n[2] > umbel.MaxAttempts || n[3] >= umbel.MaxRoutes ||
		n[4] >= 1e13 {
		return token{}, false
	}
	return token{
		shard: int(n[0]), ordinal: n[1], attempt: int(n[2]), route: int(n[3]),
		claimedAt: time.UnixMilli(n[4]).UTC(), nonce: p[6], run: umbel.RunID(p[7]),
	}, true
}

func invalidToken(s umbel.Token) *umbel.Error {
	return umbel.Invalid("token", string(s), "was not issued by this installation for this namespace")
}
