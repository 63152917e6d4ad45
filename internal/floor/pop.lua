-- pop: takes the rows that are due, the earliest first.
--
-- KEYS[1] due zset    read+write  member row ID, score the instant in ms at which it was enqueued
-- KEYS[2] row prefix  of the rows' hashes: read input, write state
-- ARGV[1] now   int   ms
-- ARGV[2] limit int   rows at most
--
-- RETURNS {id, input, id, input, ...}
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
if #ids == 0 then return ids end
redis.call('ZREM', KEYS[1], unpack(ids))
local rows = {}
for i, id in ipairs(ids) do
  local row = KEYS[2] .. id
  rows[2 * i - 1], rows[2 * i] = id, redis.call('HGET', row, 'input')
  redis.call('HSET', row, 'state', 'running')
end
return rows
