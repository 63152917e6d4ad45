-- stage: adds rows at the end of what is staged for a run. What is staged expires unless it is committed.
--
-- KEYS[1]    run     hash  read+write  status, next, k, type, routes, nroutes, bytes, t0, tail, p<route>
-- KEYS[2]    inputs  hash  write       chunks of inputs by number, large inputs by 'b<ordinal>'
-- KEYS[r+3]  due     zset  write       of route r, for each route that is known after this call
-- ARGV[1]    int    base: the ordinal that the staging begins at
-- ARGV[2]    int    offset: the ordinal of the first row here
-- ARGV[3]    int    how many rows
-- ARGV[4]    int    time to live, ms
-- ARGV[5]    int    k: rows of a chunk
-- ARGV[6]    bytes  the content type that rows share
-- ARGV[7]    int    bytes of the inputs here
-- ARGV[8]    int    most bytes of the inputs of a run
-- ARGV[9]    int    routes that the caller knew
-- ARGV[10]   int    routes with those that this call adds
-- ARGV[11]   bytes  the table of routes
-- ARGV[12]   int    1 if an input here has a field of its own, plus 2 if one has a key
-- ARGV[13]   int    how many fields follow
-- ARGV[p]    field; the first one continues the chunk that exists if the offset lies within it
-- ARGV[p+1]  bytes of the field
-- ARGV[q]    int    of a span: route; the spans follow the fields
-- ARGV[q+1]  int    delay, ms
-- ARGV[q+2]  int    not before, ms since 1970, or 0
-- ARGV[q+3]  int    first ordinal
-- ARGV[q+4]  int    last ordinal
--
-- RETURNS
--   ok         {'ok', next}
--   again      {'again', next}      the rows are here already
--   lost       {'lost', next}       a gap: rows before these are missing
--   committed  {'committed'}        the run exists, nothing can be staged for it
--   limit      {'limit', bytes}     the inputs would be larger than a run's may be
--   view       {'view', k, content type, routes, nroutes}  the caller's view of the staging is old
local offset, count, k = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[5])
local s = redis.call('HMGET', KEYS[1], 'status', 'next', 'k', 'type', 'routes', 'nroutes', 'bytes', 't0', 'tail')
if s[1] and s[1] ~= 'staging' then return {'committed'} end
local nxt = tonumber(s[2] or ARGV[1])
if offset + count <= nxt and s[1] then return {'again', nxt} end
if offset ~= nxt then return {'lost', nxt} end
if s[1] and (tonumber(s[3]) ~= k or s[4] ~= ARGV[6] or s[6] ~= ARGV[9]) then
  return {'view', tonumber(s[3]), s[4], s[5], tonumber(s[6])}
end
local bytes = tonumber(s[7] or '0') + tonumber(ARGV[7])
if bytes > tonumber(ARGV[8]) then return {'limit', bytes} end
-- WRITES
local t0 = tonumber(s[8]) or now
redis.call('HSET', KEYS[1], 'status', 'staging', 'next', offset + count, 'k', k, 'type', ARGV[6], 'routes', ARGV[11],
  'nroutes', ARGV[10], 'bytes', bytes, 't0', t0)
if tonumber(ARGV[12]) % 2 == 1 then redis.call('HSET', KEYS[1], 'large', 1) end
if tonumber(ARGV[12]) >= 2 then redis.call('HSET', KEYS[1], 'keyed', 1) end
local p = 14
local q = p + 2 * tonumber(ARGV[13])
if offset % k ~= 0 then
  local old = redis.call('HGET', KEYS[2], ARGV[p]) or ''
  redis.call('HSET', KEYS[2], ARGV[p], old .. ARGV[p+1])
  p = p + 2
end
while p < q do
  redis.call('HSET', KEYS[2], ARGV[p], ARGV[p+1])
  p = p + 2
end
local tail = s[9] or ''
while q <= #ARGV do
  local r, score = tonumber(ARGV[q]), math.max(t0 + tonumber(ARGV[q+1]), tonumber(ARGV[q+2]))
  local first, last = tonumber(ARGV[q+3]), tonumber(ARGV[q+4])
  redis.call('HINCRBY', KEYS[1], 'p' .. r, last - first + 1)
  -- tail is route, score and first ordinal of the last span: one that goes on from it becomes part of it
  local same = string.format('%02d%013d', r, score)
  if string.sub(tail, 1, 15) == same then
    local from = tonumber(string.sub(tail, 16))
    redis.call('ZREM', KEYS[r+3], string.format('%08df%08d', from, first - 1))
    first = from
  end
  redis.call('ZADD', KEYS[r+3], score, string.format('%08df%08d', first, last))
  tail = same .. first
  q = q + 5
end
redis.call('HSET', KEYS[1], 'tail', tail)
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ARGV[4]) end
return {'ok', offset + count}
