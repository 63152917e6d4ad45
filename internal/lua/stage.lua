-- stage: adds rows at the end of what is staged for a run. What is staged expires unless it is committed.
--
-- KEYS[1]    run     hash  read+write  status, next, k, type, routes, nroutes, bytes, t0, tail, sum, p<route>
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
-- ARGV[14]   int    how many groups of spans follow the fields: spans of a group share a route and an instant, and ascend.
--                   The first group begins with the first span of all
-- ARGV[15]   int    the group that ends with the last span of all
-- ARGV[16]   string  a checksum of what is staged here, or '' for none. It is kept if all that is staged is from this call
-- ARGV[p]    field; the first one continues the chunk that exists if the offset lies within it
-- ARGV[p+1]  bytes of the field
-- ARGV[q]    int    of a group: route
-- ARGV[q+1]  int    delay, ms
-- ARGV[q+2]  int    not before, ms since 1970, or 0
-- ARGV[q+3]  int    rows
-- ARGV[q+4]  int    how many spans follow
-- ARGV[i]    string of a span: its member, first and last ordinal in eight digits with an 'f' between
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
  'nroutes', ARGV[10], 'bytes', bytes, 't0', t0, 'sum', s[1] and '' or ARGV[16])
if tonumber(ARGV[12]) % 2 == 1 then redis.call('HSET', KEYS[1], 'large', 1) end
if tonumber(ARGV[12]) >= 2 then redis.call('HSET', KEYS[1], 'keyed', 1) end
local p = 17
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

-- tail is route, score (fifteen digits reach the year 9999) and member of the last span: one that goes on from it
-- becomes part of it
local tail, members, pending, ends = s[9] or '', {}, {}, tonumber(ARGV[15])
for g = 1, tonumber(ARGV[14]) do
  local r, score = tonumber(ARGV[q]), string.format('%015d', math.max(t0 + tonumber(ARGV[q+1]), tonumber(ARGV[q+2])))
  local first, last, list, m = q + 5, q + 4 + tonumber(ARGV[q+4]), members[r] or {}, nil
  pending[r] = (pending[r] or 0) + tonumber(ARGV[q+3])
  for i = first, last do
    m = ARGV[i]
    if g == 1 and i == first and string.sub(tail, 1, 17) == string.format('%02d', r) .. score then
      redis.call('ZREM', KEYS[r+3], string.sub(tail, 18))
      m = string.sub(tail, 18, 26) .. string.sub(m, 10)
    end
    list[#list+1] = score
    list[#list+1] = m
    if #list == 1000 then
      redis.call('ZADD', KEYS[r+3], unpack(list))
      list = {}
    end
  end
  members[r], q = list, last + 1
  if g == ends then redis.call('HSET', KEYS[1], 'tail', string.format('%02d', r) .. score .. m) end
end
for r, list in pairs(members) do
  if #list > 0 then redis.call('ZADD', KEYS[r+3], unpack(list)) end
  redis.call('HINCRBY', KEYS[1], 'p' .. r, pending[r])
end
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ARGV[4]) end
return {'ok', offset + count}
