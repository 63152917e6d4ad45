-- ack: stores the results of rows.
--
-- KEYS[1] row prefix  of the rows' hashes: write state, result
-- ARGV    id, result, id, result, ...
--
-- RETURNS how many rows it wrote
for i = 1, #ARGV, 2 do
  redis.call('HSET', KEYS[1] .. ARGV[i], 'state', 'done', 'result', ARGV[i + 1])
end
return #ARGV / 2
