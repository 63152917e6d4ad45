package cost

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// spans is the yardstick: the barest way to keep a fan-out in spans and batched events on Redis, without leases that
// lapse, retries, dedup across claims, routes or scopes. It is written anew here from the idea alone.
type spans struct {
	rdb redis.UniversalClient
}

const (
	spansMeta, spansHistory, spansInputs  = "{s}:meta", "{s}:history", "{s}:inputs"
	spansPending, spansClaimed, spansBits = "{s}:pending", "{s}:claimed", "{s}:bits"
	spansWorkflow                         = "wf-0190c0de-aaaa-bbbb-cccc-0123456789ab"
	spansInput, spansResult               = `{"customer":"cus_1234567890","amount":1999,"currency":"usd","description":"monthly subscription, pro"}`, `{"ok":true,"n":12345}`
)

var spansAppend = redis.NewScript(`
local first, n = tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call('XADD', KEYS[2], '1-0', 'f', first .. ':' .. n)
redis.call('ZADD', KEYS[3], ARGV[4], ARGV[1] .. '|' .. first .. '-' .. (first + n - 1))
return redis.call('HSET', KEYS[1], 'head', 2 * n)`)

var spansClaim = redis.NewScript(`
local now, want = ARGV[1], tonumber(ARGV[2])
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, want)
local out, claimed, gone = {}, {}, {}
for i = 1, #due do
  local wf, a, b = string.match(due[i], '^(.*)|(%d+)-(%d+)$')
  a, b = tonumber(a), tonumber(b)
  local last = math.min(b, a + want - 1)
  gone[#gone+1] = due[i]
  for o = a, last do
    claimed[#claimed+1] = now
    claimed[#claimed+1] = wf .. '|' .. o
  end
  out[#out+1], out[#out+2] = a, last
  want = want - (last - a + 1)
  if last < b then redis.call('ZADD', KEYS[1], now, wf .. '|' .. (last + 1) .. '-' .. b) end
  if want == 0 then break end
end
if #gone > 0 then
  redis.call('ZREM', KEYS[1], unpack(gone))
  redis.call('ZADD', KEYS[2], unpack(claimed))
end
return out`)

var spansComplete = redis.NewScript(`
local head = tonumber(redis.call('HGET', KEYS[1], 'head'))
local out, gone, events, n = {}, {}, {}, 0
for i = 1, #ARGV, 3 do
  if redis.call('SETBIT', KEYS[3], ARGV[i+1], 1) == 0 then
    n = n + 1
    events[2*n-1], events[2*n] = ARGV[i+1], ARGV[i+2]
    out[#out+1] = 1
  else
    out[#out+1] = 0
  end
  gone[#gone+1] = ARGV[i]
end
redis.call('ZREM', KEYS[4], unpack(gone))
if n > 0 then
  redis.call('XADD', KEYS[2], (head + 1) .. '-' .. n, unpack(events))
  redis.call('HSET', KEYS[1], 'head', head + n)
  redis.call('HINCRBY', KEYS[1], 'done', n)
end
return out`)

// run takes n rows through their life in batches.
func (s spans) run(t testing.TB, n, batch int) {
	t.Helper()
	ctx := context.Background()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(s.rdb.Del(ctx, spansMeta, spansHistory, spansInputs, spansPending, spansClaimed, spansBits).Err())
	for first := 0; first < n; first += batch {
		args := make([]any, min(batch, n-first))
		for i := range args {
			args[i] = spansInput
		}
		must(s.rdb.RPush(ctx, spansInputs, args...).Err())
	}
	must(spansAppend.Run(ctx, s.rdb, []string{spansMeta, spansHistory, spansPending}, spansWorkflow, 0, n, 1700000000000).Err())
	var rows []int64
	for {
		got, err := spansClaim.Run(ctx, s.rdb, []string{spansPending, spansClaimed}, time.Now().UnixMilli(), batch).Int64Slice()
		must(err)
		if len(got) == 0 {
			break
		}
		for i := 0; i < len(got); i += 2 {
			must(s.rdb.LRange(ctx, spansInputs, got[i], got[i+1]).Err())
			for o := got[i]; o <= got[i+1]; o++ {
				rows = append(rows, o)
			}
		}
	}
	for len(rows) > 0 {
		k := min(batch, len(rows))
		args := make([]any, 0, 3*k)
		for _, o := range rows[:k] {
			args = append(args, spansWorkflow+"|"+strconv.FormatInt(o, 10), o, spansResult)
		}
		must(spansComplete.Run(ctx, s.rdb, []string{spansMeta, spansHistory, spansBits, spansClaimed}, args...).Err())
		rows = rows[k:]
	}
	if left := s.rdb.ZCard(ctx, spansClaimed).Val(); left != 0 {
		t.Fatalf("%d rows are still claimed", left)
	}
}
