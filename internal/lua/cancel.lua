-- cancel: cancels what is open of a run and closes it.
--
-- KEYS[1]    run       hash    read+write
-- KEYS[2]    wf        hash    read+write  head
-- KEYS[3]    history   stream  append
-- KEYS[4]    rows      hash    delete
-- KEYS[5]    resolved  bitmap  read+write
-- KEYS[6]    rest      bitmap  write       the ordinals that were open
-- KEYS[7]    ready     zset    write
-- KEYS[8]    backlog   hash    write
-- KEYS[9]    runs      zset    write       the run is listed as cancelled
-- KEYS[at+1] due       zset    delete      of each route
-- KEYS[at+2] route     zset    write       of each route
-- ARGV[1] id      the run's ID
-- ARGV[2] bytes   the event CancelRequested
-- ARGV[3] bytes   the events that close the run as cancelled
-- ARGV[4] string  channel of wake-ups
-- ARGV[5] string  shard
-- ARGV[6] int     most sequence number
-- ARGV[r+7] string route r
--
-- RETURNS
--   ok      {'ok', cancelled, head}
--   absent  {'absent'}
--   closed  {'closed', status}
--   routes  {'routes', nroutes}   the caller's table of routes is old
--   full    {'full', head}        the history can count no further
local run = redis.call('HMGET', KEYS[1], 'status', 'n', 'completed', 'failed', 'cancelled', 'nroutes', 'started')
if not run[1] or run[1] == 'staging' then return {'absent'} end
if run[1] ~= 'running' then return {'closed', run[1]} end
local routes, n = #ARGV - 6, tonumber(run[2])
if tonumber(run[6]) ~= routes then return {'routes', tonumber(run[6])} end
local cancelled = tonumber(run[5] or '0')
local open = n - tonumber(run[3] or '0') - tonumber(run[4] or '0') - cancelled
local head = tonumber(redis.call('HGET', KEYS[2], 'head') or '0')
if head + open + 3 > tonumber(ARGV[6]) then return {'full', head} end
-- WRITES
for r = 0, routes - 1 do
  local at = 9 + 2 * r
  redis.call('ZREM', KEYS[at+2], ARGV[1])
  redis.call('UNLINK', KEYS[at+1])
  count_pending(KEYS[8], ARGV[r+7], 0 - tonumber(redis.call('HGET', KEYS[1], 'p' .. r) or '0'))
  redis.call('HSET', KEYS[1], 'p' .. r, 0)
  refresh(KEYS[7], KEYS[at+2], ARGV[r+7])
end
redis.call('UNLINK', KEYS[4])
if open > 0 then
  -- the complement of what is resolved, without the bits behind the last ordinal
  redis.call('SETBIT', KEYS[5], n - 1, redis.call('GETBIT', KEYS[5], n - 1))
  redis.call('BITOP', 'NOT', KEYS[6], KEYS[5])
  local o = n
  while o % 8 ~= 0 do
    redis.call('SETBIT', KEYS[6], o, 0)
    o = o + 1
  end
  redis.call('BITOP', 'OR', KEYS[5], KEYS[5], KEYS[6])
end
redis.call('HSET', KEYS[1], 'status', 'cancelled', 'cancelled', cancelled + open, 'closed', now, 'holes', 0)
local place = listed(run[7], ARGV[1])
redis.call('ZREM', KEYS[9], 'r' .. place)
redis.call('ZADD', KEYS[9], 0, 'x' .. place)
redis.call('XADD', KEYS[3], string.format('%.0f-1', head + 1), 'e', ARGV[2], 't', now)
head = head + 1
if open > 0 then
  redis.call('XADD', KEYS[3], string.format('%.0f-%.0f', head + 1, open), 'x', ARGV[1], 't', now)
  head = head + open
end
redis.call('XADD', KEYS[3], string.format('%.0f-2', head + 1), 'e', ARGV[3], 't', now)
redis.call('HSET', KEYS[2], 'head', string.format('%.0f', head + 2))
redis.pcall('PUBLISH', ARGV[4], 'c ' .. ARGV[5] .. ' ' .. ARGV[1])
return {'ok', open, head + 2}
