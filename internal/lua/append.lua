-- append: adds events to a history that is written from outside.
--
-- KEYS[1] wf       hash    read+write  head, token
-- KEYS[2] history  stream  append
-- ARGV[1] string  write token
-- ARGV[2] int     head that is expected
-- ARGV[3] int     how many events
-- ARGV[4] bytes   the events
-- ARGV[5] int     most sequence number
--
-- RETURNS
--   ok        {'ok', head}
--   fenced    {'fenced'}            the token is not the one in force
--   conflict  {'conflict', head}    the head is another
--   full      {'full', head}        the history can count no further
local wf = redis.call('HMGET', KEYS[1], 'head', 'token')
local head, count = tonumber(wf[1] or '0'), tonumber(ARGV[3])
if ARGV[1] ~= wf[2] then return {'fenced'} end
if tonumber(ARGV[2]) ~= head then return {'conflict', head} end
if head + count > tonumber(ARGV[5]) then return {'full', head} end
-- WRITES
redis.call('XADD', KEYS[2], string.format('%.0f-%.0f', head + 1, count), 'e', ARGV[4], 't', now)
redis.call('HSET', KEYS[1], 'head', string.format('%.0f', head + count))
return {'ok', head + count}
