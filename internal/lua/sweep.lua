-- sweep: names the claims of a shard whose lease has lapsed. After a gap in which nobody swept, or a step of the clock
-- backwards, a claim is given one more lease: its worker could not renew it.
--
-- KEYS[1] sweep   hash  read+write  last, gap
-- KEYS[2] claims  zset  read+write
-- KEYS[3] leases  hash  read
-- ARGV[1] int  the shortest gap that counts, ms: a third of the shortest lease
-- ARGV[2] int  most claims to name
--
-- RETURNS
--   ok  {'ok', now, gap, {nonce, record …}}  gap is when the last gap ended
local s = redis.call('HMGET', KEYS[1], 'last', 'gap')
local last, gap = tonumber(s[1] or '-1'), tonumber(s[2] or '0')
if last < 0 or now - last > tonumber(ARGV[1]) or now < last then gap = now end
-- WRITES
redis.call('ZREM', KEYS[2], '') -- takes nothing; a full Redis refuses a script whose first write adds
redis.call('HSET', KEYS[1], 'last', now, 'gap', gap)
local lapsed, found = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, ARGV[2]), {}
for i = 1, #lapsed do
  local rec = redis.call('HGET', KEYS[3], lapsed[i])
  local grace = rec and gap + (tonumber(string.sub(rec, 2, 10)) or 0) or 0 -- a damaged record is for the caller to tell
  if now >= grace then
    found[#found+1], found[#found+2] = lapsed[i], rec or ''
  else
    redis.call('ZADD', KEYS[2], 'XX', grace, lapsed[i])
  end
end
return {'ok', now, gap, found}
