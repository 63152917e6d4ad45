-- deliver: marks claims whose rows have reached their worker: if one lapses from now on, that costs an attempt.
--
-- KEYS[1] leases  hash  read+write
-- ARGV[i] string  nonces
--
-- RETURNS
--   ok  {'ok', how many claims were marked}
-- WRITES
redis.call('HDEL', KEYS[1], '') -- takes nothing; a full Redis refuses a script whose first write adds
local marked = 0
for i = 1, #ARGV do
  local rec = redis.call('HGET', KEYS[1], ARGV[i])
  if rec and string.sub(rec, 1, 1) == '0' then
    redis.call('HSET', KEYS[1], ARGV[i], '1' .. string.sub(rec, 2))
    marked = marked + 1
  end
end
return {'ok', marked}
