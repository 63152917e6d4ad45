-- dispatch: adds what is staged at the end of a run that is written from outside, and opens the run if need be.
--
-- KEYS[1]    staged   hash    read+delete
-- KEYS[2]    sinputs  hash    read+delete
-- KEYS[3]    run      hash    read+write
-- KEYS[4]    inputs   hash    write
-- KEYS[5]    wf       hash    read+write  run, head, token
-- KEYS[6]    history  stream  append
-- KEYS[7]    ready    zset    write
-- KEYS[8]    backlog  hash    write
-- KEYS[9]    runs     zset    write        a run that this opens is listed
-- KEYS[at+1] sdue     zset    read+delete  of each route, as staged
-- KEYS[at+2] due      zset    write        of each route
-- KEYS[at+3] route    zset    write        of each route
-- ARGV[1]  id      the run's ID
-- ARGV[2]  bytes   namespace
-- ARGV[3]  bytes   workflow ID
-- ARGV[4]  int     base: the run's n before
-- ARGV[5]  int     rows that are added
-- ARGV[6]  string  write token, or '' for none
-- ARGV[7]  int     head that is expected, or '' for whichever
-- ARGV[8]  int     1 to write events, 0 for rows only
-- ARGV[9]  string  channel of wake-ups
-- ARGV[10] string  shard
-- ARGV[11] int     most sequence number
-- ARGV[12] int     most bytes of the inputs of a run
-- ARGV[r+13] string route r
--
-- RETURNS
--   ok        {'ok', head}          also if this staging was dispatched before and the reply was lost
--   fenced    {'fenced'}            the token is not the one in force
--   conflict  {'conflict', head}    the head is another
--   moved     {'moved', n}          the run has another n
--   run       {'run', id}           the workflow's current run is another
--   taken     {'taken'}             the run is another workflow's
--   closed    {'closed', status}    the run takes no rows any more
--   lost      {'lost', next}        what was staged has expired (or a part of it was evicted)
--   full      {'full', head}        the history can count no further
--   limit     {'limit', bytes}      the inputs would be larger than a run's may be
local base, count, routes = tonumber(ARGV[4]), tonumber(ARGV[5]), #ARGV - 12
local run = redis.call('HMGET', KEYS[3], 'status', 'n', 'auto', 'from', 'upto', 'bytes', 'ns', 'wf')
if run[4] == KEYS[1] then return {'ok', tonumber(run[5])} end
local wf = redis.call('HMGET', KEYS[5], 'run', 'head', 'token')
local head = tonumber(wf[2] or '0')
if ARGV[6] ~= '' and ARGV[6] ~= wf[3] then return {'fenced'} end
if ARGV[7] ~= '' and tonumber(ARGV[7]) ~= head then return {'conflict', head} end
if wf[1] and wf[1] ~= ARGV[1] then return {'run', wf[1]} end
if run[1] and (run[7] ~= ARGV[2] or run[8] ~= ARGV[3]) then return {'taken'} end
if run[1] and (run[1] ~= 'running' or run[3] == '1') then return {'closed', run[1]} end
local n = tonumber(run[2] or '0')
if n ~= base then return {'moved', n} end
local s = redis.call('HMGET', KEYS[1], 'status', 'next', 'nroutes', 'k', 'type', 'routes', 'bytes', 'large', 'keyed')
if s[1] ~= 'staging' or tonumber(s[2]) ~= base + count or tonumber(s[3]) ~= routes
  or redis.call('EXISTS', KEYS[2]) == 0 then
  return {'lost', tonumber(s[2] or '0')}
end
local events = ARGV[8] == '1' and 2 * count or 0
if head + events > tonumber(ARGV[11]) then return {'full', head} end
local bytes = tonumber(run[6] or '0') + tonumber(s[7])
if bytes > tonumber(ARGV[12]) then return {'limit', bytes} end
for r = 0, routes - 1 do
  local at = 9 + 3 * r
  if redis.call('HEXISTS', KEYS[1], 'p' .. r) ~= redis.call('EXISTS', KEYS[at+1]) then return {'lost', 0} end
end
-- WRITES
redis.call('HSET', KEYS[3], 'status', 'running', 'ns', ARGV[2], 'wf', ARGV[3], 'n', base + count, 'k', s[4], 'type', s[5],
  'routes', s[6], 'nroutes', s[3], 'from', KEYS[1], 'upto', string.format('%.0f', head + events))
redis.call('HINCRBY', KEYS[3], 'bytes', s[7])
if s[8] then redis.call('HSET', KEYS[3], 'large', 1) end
if s[9] then redis.call('HSET', KEYS[3], 'keyed', 1) end
if not run[1] then
  redis.call('HSET', KEYS[3], 'auto', 0, 'started', now)
  local place = listed(now, ARGV[1])
  redis.call('ZADD', KEYS[9], 0, 'a' .. place, 0, 'r' .. place)
end
if events > 0 then
  redis.call('XADD', KEYS[6], string.format('%.0f-%.0f', head + 1, events), 'd', base .. ' ' .. count .. ' ' .. ARGV[1],
    't', now)
end
redis.call('HSET', KEYS[5], 'run', ARGV[1], 'head', string.format('%.0f', head + events))
if base == 0 then
  redis.call('RENAME', KEYS[2], KEYS[4])
  redis.call('PERSIST', KEYS[4])
else
  -- the first chunk may continue one that the run has; a page of fields at a time, not to hold them all
  local cursor, k = '0', tonumber(s[4])
  local seam = base % k ~= 0 and string.format('%d', (base - base % k) / k) or nil
  repeat
    local page = redis.call('HSCAN', KEYS[2], cursor, 'COUNT', 64)
    cursor = page[1]
    for i = 1, #page[2], 2 do
      local f, v = page[2][i], page[2][i+1]
      if f ~= seam then redis.call('HSET', KEYS[4], f, v) end
    end
  until cursor == '0'
  if seam then
    redis.call('HSET', KEYS[4], seam, (redis.call('HGET', KEYS[4], seam) or '') .. (redis.call('HGET', KEYS[2], seam) or ''))
  end
  redis.call('UNLINK', KEYS[2])
end
local wake = {}
for r = 0, routes - 1 do
  local at = 9 + 3 * r
  local route, added = ARGV[r+13], redis.call('HGET', KEYS[1], 'p' .. r)
  if added then
    redis.call('HINCRBY', KEYS[3], 'p' .. r, added)
    count_pending(KEYS[8], route, added)
    -- by the first of the new rows: those that wait already do not bring the run before others once more
    local score = tonumber(redis.call('ZRANGE', KEYS[at+1], 0, 0, 'WITHSCORES')[2])
    redis.call('ZUNIONSTORE', KEYS[at+2], 2, KEYS[at+2], KEYS[at+1], 'AGGREGATE', 'MIN')
    redis.call('UNLINK', KEYS[at+1])
    if arrive(KEYS[7], KEYS[at+3], route, ARGV[1], score) then
      wake[#wake+1] = 'r ' .. ARGV[10] .. ' ' .. score .. ' ' .. route
    end
  end
end
redis.call('UNLINK', KEYS[1])
for i = 1, #wake do redis.pcall('PUBLISH', ARGV[9], wake[i]) end
return {'ok', head + events}
