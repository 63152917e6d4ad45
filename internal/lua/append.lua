-- append: adds events to a history that is written from outside.
--
-- KEYS[1] wf       hash    read+write  head, token
-- KEYS[2] history  stream  read+append
-- ARGV[1] string  write token
-- ARGV[2] int     head that is expected
-- ARGV[3] int     how many events
-- ARGV[4] bytes   the events
-- ARGV[5] int     most sequence number
--
-- RETURNS
--   ok        {'ok', head}          head after these events, also if they stand there already: the reply was lost
--   fenced    {'fenced'}            the token is not the one in force
--   conflict  {'conflict', head}    the head is another
--   full      {'full', head}        the history can count no further
local wf = redis.call('HMGET', KEYS[1], 'head', 'token')
local head, expected, count = tonumber(wf[1] or '0'), tonumber(ARGV[2]), tonumber(ARGV[3])
local id = string.format('%.0f-%.0f', expected + 1, count)
if ARGV[1] ~= wf[2] then return {'fenced'} end
if expected ~= head then
  local there = redis.call('XRANGE', KEYS[2], id, id)[1]
  if there and there[2][1] == 'e' and there[2][2] == ARGV[4] then return {'ok', expected + count} end
  return {'conflict', head}
end
if head + count > tonumber(ARGV[5]) then return {'full', head} end
-- WRITES
redis.call('XADD', KEYS[2], id, 'e', ARGV[4], 't', now)
redis.call('HSET', KEYS[1], 'head', string.format('%.0f', head + count))
return {'ok', head + count}
