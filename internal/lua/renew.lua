-- renew: starts the leases of claims anew and says which of their rows they still hold. Who renews has the rows, so that
-- the claim counts as delivered.
--
-- KEYS[1]    claims     zset    write
-- KEYS[2]    leases     hash    read+write
-- KEYS[at+1] run        hash    read  of each claim
-- KEYS[at+2] rows       hash    read
-- KEYS[at+3] cancelled  bitmap  read
-- ARGV[p]    string  of a claim: its nonce
-- ARGV[p+1]  int     how many ordinals follow, up to 1,000
-- ARGV[p+1+j] int    ordinal j
--
-- RETURNS
--   ok  {'ok', states …}  of each claim a string with a letter for each ordinal: h held, l lost, c cancelled
-- WRITES
redis.call('ZREM', KEYS[1], '') -- takes nothing; a full Redis refuses a script whose first write adds
local reply, p, at = {'ok'}, 1, 2
while p < #ARGV do
  local nonce, count, states, held = ARGV[p], tonumber(ARGV[p+1]), {}, 0
  local rows = {}
  for j = 1, count do rows[j] = ARGV[p+1+j] end
  local records = count > 0 and redis.call('HMGET', KEYS[at+2], unpack(rows)) or {}
  local status = redis.call('HGET', KEYS[at+1], 'status')
  local lease = redis.call('HGET', KEYS[2], nonce)
  local length = lease and tonumber(string.sub(lease, 2, 10)) -- none if the record is damaged
  for j = 1, count do
    local rec = records[j]
    if length and rec and string.sub(rec, 1, 1) == 'C' and string.sub(rec, 6, 31) == nonce then
      states[j], held = 'h', held + 1
    elseif status == 'cancelled' or redis.call('GETBIT', KEYS[at+3], rows[j]) == 1 then
      states[j] = 'c'
    else
      states[j] = 'l'
    end
  end
  if held > 0 then
    redis.call('ZADD', KEYS[1], 'XX', now + length, nonce)
    if string.sub(lease, 1, 1) == '0' then redis.call('HSET', KEYS[2], nonce, '1' .. string.sub(lease, 2)) end
  end
  reply[#reply+1] = table.concat(states)
  p, at = p + 2 + count, at + 3
end
return reply
