-- commit: makes what is staged a run of its workflow, unless the workflow has one.
--
-- KEYS[1]    run      hash    read+write  what was staged becomes the run
-- KEYS[2]    inputs   hash    persist
-- KEYS[3]    wf       hash    read+write  run, head, digest, n
-- KEYS[4]    history  stream  append
-- KEYS[5]    ready    zset    write
-- KEYS[6]    backlog  hash    write
-- KEYS[7]    runs     zset    write       the run is listed
-- KEYS[at+1] due      zset    persist     of each route
-- KEYS[at+2] route    zset    write       of each route
-- ARGV[1]  id       the run's ID
-- ARGV[2]  bytes    namespace
-- ARGV[3]  bytes    workflow ID
-- ARGV[4]  int      n: rows of the run
-- ARGV[5]  bytes    digest
-- ARGV[6]  bytes    policies of the activity types
-- ARGV[7]  bytes    the event WorkflowStarted
-- ARGV[8]  bytes    the events that close a run without rows
-- ARGV[9]  string   channel of wake-ups
-- ARGV[10] string   shard
-- ARGV[11] int      most sequence number
-- ARGV[12] string  the checksum that all of what is staged was staged with, in one call; '' to commit whatever is there
-- ARGV[r+13] string route r
--
-- RETURNS
--   ok      {'ok', n}
--   again   {'again', n}                  this run is committed already
--   exists  {'exists', run, n, digest}    the workflow has another run
--   lost    {'lost', next}                rows are missing, or what was staged has expired (or a part of it was evicted)
--   other   {'other', next}               other rows are staged
--   routes  {'routes', nroutes}           the caller's table of routes is old
--   full    {'full', head}                the history can count no further
local n = tonumber(ARGV[4])
local wf = redis.call('HMGET', KEYS[3], 'run', 'head', 'digest', 'n')
if wf[1] == ARGV[1] then return {'again', tonumber(wf[4])} end
if wf[1] then return {'exists', wf[1], tonumber(wf[4] or '0'), wf[3] or ''} end
local s = redis.call('HMGET', KEYS[1], 'status', 'next', 'nroutes', 'sum')
if s[1] and s[1] ~= 'staging' or tonumber(s[2] or '0') ~= n then return {'lost', tonumber(s[2] or '0')} end
if ARGV[12] ~= '' and ARGV[12] ~= s[4] then return {'other', n} end
local routes = #ARGV - 12
if tonumber(s[3] or '0') ~= routes then return {'routes', tonumber(s[3] or '0')} end
local head = tonumber(wf[2] or '0')
if head + 2 * n + 3 > tonumber(ARGV[11]) then return {'full', head} end
if n > 0 and redis.call('EXISTS', KEYS[2]) == 0 then return {'lost', 0} end
for r = 0, routes - 1 do
  local at = 7 + 2 * r
  if redis.call('EXISTS', KEYS[at+1]) == 0 then return {'lost', 0} end
end
-- WRITES
local status = n == 0 and 'completed' or 'running'
redis.call('HSET', KEYS[1], 'status', status, 'ns', ARGV[2], 'wf', ARGV[3], 'n', n, 'auto', 1, 'types', ARGV[6],
  'started', now)
redis.call('HDEL', KEYS[1], 'next', 'tail', 'sum')
redis.call('PERSIST', KEYS[1])
redis.call('PERSIST', KEYS[2])
redis.call('XADD', KEYS[4], string.format('%.0f-1', head + 1), 'e', ARGV[7], 't', now)
head = head + 1
if n > 0 then
  redis.call('XADD', KEYS[4], string.format('%.0f-%.0f', head + 1, 2 * n), 'd', '0 ' .. n .. ' ' .. ARGV[1], 't', now)
  head = head + 2 * n
else
  redis.call('XADD', KEYS[4], string.format('%.0f-2', head + 1), 'e', ARGV[8], 't', now)
  head = head + 2
  redis.call('HSET', KEYS[1], 'closed', now)
end
redis.call('HSET', KEYS[3], 'run', ARGV[1], 'head', string.format('%.0f', head), 'digest', ARGV[5], 'n', n)
local place = listed(now, ARGV[1])
redis.call('ZADD', KEYS[7], 0, 'a' .. place, 0, (n == 0 and 'c' or 'r') .. place)
local wake = {}
for r = 0, routes - 1 do
  local at = 7 + 2 * r
  local route = ARGV[r+13]
  redis.call('PERSIST', KEYS[at+1])
  count_pending(KEYS[6], route, redis.call('HGET', KEYS[1], 'p' .. r))
  local score = tonumber(redis.call('ZRANGE', KEYS[at+1], 0, 0, 'WITHSCORES')[2])
  if arrive(KEYS[5], KEYS[at+2], route, ARGV[1], score) then
    wake[#wake+1] = 'r ' .. ARGV[10] .. ' ' .. score .. ' ' .. route
  end
end
for i = 1, #wake do redis.pcall('PUBLISH', ARGV[9], wake[i]) end
return {'ok', n}
